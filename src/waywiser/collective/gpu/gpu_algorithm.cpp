#include "waywiser/collective/gpu/gpu_algorithm.hpp"

namespace waywiser {
namespace {

constexpr unsigned most = 1024;

}  // namespace

std::string text(const GpuAlgorithm& way) {
  if (way.engine == GpuAlgorithm::Engine::hierarchy) return "hierarchy";
  if (way.engine == GpuAlgorithm::Engine::symmetric) return "symmetric";
  if (way.engine == GpuAlgorithm::Engine::copies) {
    Way named{"copy_engine"};
    if (way.pieces != 0) named.parameters = {{"pieces", std::to_string(way.pieces)}};
    return text(named);
  }
  if (way.engine != GpuAlgorithm::Engine::kernels) return way.engine == GpuAlgorithm::Engine::host ? "host" : "nccl";
  Way named{std::string(fused::name(way.method))};
  if (way.blocks != 0)
    named.parameters = {{"blocks", std::to_string(way.blocks)}, {"threads", std::to_string(way.threads)}};
  return text(named);
}

std::optional<GpuAlgorithm> gpu_algorithm(const Way& way) {
  if (way == Way{"host"}) return GpuAlgorithm{};
  if (way == Way{"nccl"}) return GpuAlgorithm{GpuAlgorithm::Engine::nccl, {}, 0, 0};
  if (way == Way{"hierarchy"}) return GpuAlgorithm{GpuAlgorithm::Engine::hierarchy, {}, 0, 0};
  if (way == Way{"symmetric"}) return GpuAlgorithm{GpuAlgorithm::Engine::symmetric, {}, 0, 0};
  if (way.name == "copy_engine") {
    GpuAlgorithm found{GpuAlgorithm::Engine::copies, {}, 0, 0};
    return way.has_only({"pieces"}) && way.read("pieces", most, found.pieces) ? std::optional(found) : std::nullopt;
  }
  std::string_view bare = way.name;
  constexpr std::string_view of_table = "fused_";  // as the table of algorithms names them
  if (bare.starts_with(of_table)) bare.remove_prefix(of_table.size());
  using fused::Method;
  for (const Method method : {Method::ll, Method::one_shot, Method::two_shot, Method::ll128, Method::two_shot_ll128}) {
    if (bare != fused::name(method)) continue;
    GpuAlgorithm found{GpuAlgorithm::Engine::kernels, method, 0, 0};
    const bool is_read = way.has_only({"blocks", "threads"}) && way.parameters.size() != 1 &&
                         way.read("blocks", most, found.blocks) && way.read("threads", most, found.threads);
    return is_read ? std::optional(found) : std::nullopt;
  }
  return {};
}

PlannedGpuAlgorithms::PlannedGpuAlgorithms(const Chooser* chooser, int ranks) {
  for (std::size_t operation = 0; operation < ways_.size(); ++operation) {
    // A reduce is one half of an all_reduce by the same kernels: it has no measurements of its own.
    const auto each = static_cast<Collective>(operation);
    const std::string_view measured = name(each == Collective::reduce ? Collective::all_reduce : each);
    ways_[operation] = {chooser, {measured, "gpu", ranks}, gpu_algorithm};
  }
}

}  // namespace waywiser
