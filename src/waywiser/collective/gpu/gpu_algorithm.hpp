#pragma once

#include <array>
#include <optional>
#include <string>

#include "waywiser/collective/call.hpp"
#include "waywiser/collective/fused/kernel.hpp"
#include "waywiser/policy/planned_ways.hpp"

namespace waywiser {

// How a collective of GPU arrays runs, as plans and measurements name it: "host", "nccl", "hierarchy" (kernels within
// machines, hosts between them), "copy_engine", "symmetric" (straight between symmetric arrays), "one_shot", or with
// parameters "copy_engine(pieces=8)",
// "one_shot(blocks=64,threads=512)".
struct GpuAlgorithm {
  enum class Engine { host, kernels, nccl, hierarchy, copies, symmetric };

  Engine engine = Engine::host;
  fused::Method method = fused::Method::ll;
  unsigned blocks = 0, threads = 0;  // 0: the default grid
  unsigned pieces = 0;               // of copies; 0: the default
};

std::string text(const GpuAlgorithm& way);
// Empty if it is another way.
std::optional<GpuAlgorithm> gpu_algorithm(const Way& way);

// The plan's algorithms for GPU collectives of a number of ranks, read once.
class PlannedGpuAlgorithms {
 public:
  PlannedGpuAlgorithms(const Chooser* chooser, int ranks);  // nullptr: no plan

  // See PlannedWays::find.
  template <typename May, typename WhyNot>
  const GpuAlgorithm* find(Collective operation, Bytes bytes, May may, WhyNot why_not) const {
    return ways_[static_cast<std::size_t>(operation)].find(bytes, may, why_not);
  }

 private:
  std::array<PlannedWays<GpuAlgorithm>, collectives> ways_;
};

}  // namespace waywiser
