#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "waywiser/device/region.hpp"
#include "waywiser/kernels/block/exposed.hpp"

namespace waywiser {

// The windows of GPU memory of one group, in slots that all ranks number alike: for kernels that store directly into
// the memory of other ranks.
class ExposedMemory {
 public:
  static constexpr unsigned slots = block::exposed_slots;  // from 1

  struct Window {
    std::vector<Region> ranks;           // as this process has them mapped
    std::shared_ptr<const void> mapped;  // holds them; who keeps it keeps the slot
  };
  class Watcher {
   public:
    virtual void came(unsigned slot, const Window& window) = 0;
    virtual void went(unsigned slot, const Window& window) noexcept = 0;

   protected:
    ~Watcher() = default;
  };

  // Bit i: slot i cannot be given away at this rank.
  std::uint32_t in_use() const noexcept;
  void add(unsigned slot, Window window);
  void remove(unsigned slot) noexcept;
  // It is told of the windows that there are, too. Null: nobody.
  void watch(Watcher* watcher);

 private:
  std::array<Window, slots + 1> windows_;
  std::array<std::weak_ptr<const void>, slots + 1> kept_;
  Watcher* watcher_ = nullptr;
};

}  // namespace waywiser
