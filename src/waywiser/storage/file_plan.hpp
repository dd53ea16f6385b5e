#pragma once

#include <filesystem>
#include <memory>

namespace waywiser {

struct Plan;

// A plan, read once, for any number of files; without one the defaults choose.
class [[gnu::visibility("default")]] FilePlan {
 public:
  FilePlan() = default;
  // Throws invalid_input or io.
  static FilePlan of(const std::filesystem::path& plan);
  // That of WAYWISER_PLAN, or none.
  static FilePlan usual();

  const Plan* plan() const noexcept { return plan_.get(); }

 private:
  std::shared_ptr<const Plan> plan_;
};

}  // namespace waywiser
