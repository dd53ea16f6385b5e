#include "waywiser/storage/file_plan.hpp"

#include "waywiser/base/environment.hpp"
#include "waywiser/policy/plan.hpp"

namespace waywiser {

FilePlan FilePlan::of(const std::filesystem::path& plan) {
  FilePlan found;
  found.plan_ = std::make_shared<const Plan>(plan_from_json(read_json(plan), plan.string()));
  return found;
}

FilePlan FilePlan::usual() {
  const auto named = environment("WAYWISER_PLAN");
  return named ? of(*named) : FilePlan();
}

}  // namespace waywiser
