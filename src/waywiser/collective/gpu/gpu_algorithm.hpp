#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waywiser/base/units.hpp"
#include "waywiser/collective/call.hpp"
#include "waywiser/collective/fused/kernel.hpp"

namespace waywiser {

class Chooser;

// How a collective of GPU arrays runs, as plans and measurements name it: "host", "nccl", "hierarchy" (kernels within
// machines, hosts between them), "one_shot", or with its grid "one_shot(blocks=64,threads=512)".
struct GpuAlgorithm {
  enum class Engine { host, kernels, nccl, hierarchy };

  Engine engine = Engine::host;
  fused::Method method = fused::Method::ll;
  unsigned blocks = 0, threads = 0;  // 0: the default grid
};

std::string text(const GpuAlgorithm& way);
// Empty if the text names none.
std::optional<GpuAlgorithm> parse_gpu_algorithm(std::string_view text);

// The plan's algorithms for GPU collectives of a number of ranks, read once.
class PlannedGpuAlgorithms {
 public:
  PlannedGpuAlgorithms(const Chooser* chooser, int ranks);  // nullptr: no plan

  // nullptr: the plan has none for this size.
  const GpuAlgorithm* find(Collective operation, Bytes bytes) const noexcept;

 private:
  struct Row {
    Bytes from, to;
    GpuAlgorithm way;
  };
  std::array<std::vector<Row>, collectives> rows_;
};

}  // namespace waywiser
