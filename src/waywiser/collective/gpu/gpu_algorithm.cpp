#include "waywiser/collective/gpu/gpu_algorithm.hpp"

#include <charconv>

#include "waywiser/policy/chooser.hpp"

namespace waywiser {
namespace {

constexpr unsigned most = 1024;

// Takes `prefix` and a number from the front of `text`.
std::optional<unsigned> take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return {};
  text.remove_prefix(prefix.size());
  unsigned value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || value == 0 || value > most) return {};
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

}  // namespace

std::string text(const GpuAlgorithm& way) {
  if (way.engine == GpuAlgorithm::Engine::hierarchy) return "hierarchy";
  if (way.engine != GpuAlgorithm::Engine::kernels) return way.engine == GpuAlgorithm::Engine::host ? "host" : "nccl";
  std::string text(fused::name(way.method));
  if (way.blocks == 0) return text;
  return text + "(blocks=" + std::to_string(way.blocks) + ",threads=" + std::to_string(way.threads) + ")";
}

std::optional<GpuAlgorithm> parse_gpu_algorithm(std::string_view text) {
  if (text == "host") return GpuAlgorithm{};
  if (text == "nccl") return GpuAlgorithm{GpuAlgorithm::Engine::nccl, {}, 0, 0};
  if (text == "hierarchy") return GpuAlgorithm{GpuAlgorithm::Engine::hierarchy, {}, 0, 0};
  constexpr std::string_view of_table = "fused_";  // as the table of algorithms names them
  if (text.starts_with(of_table)) text.remove_prefix(of_table.size());
  using fused::Method;
  for (const Method method : {Method::ll, Method::one_shot, Method::two_shot, Method::ll128, Method::two_shot_ll128}) {
    const std::string_view name = fused::name(method);
    if (!text.starts_with(name) || (text != name && text[name.size()] != '(')) continue;
    if (text == name) return GpuAlgorithm{GpuAlgorithm::Engine::kernels, method, 0, 0};
    text.remove_prefix(name.size());
    const auto blocks = take(text, "(blocks="), threads = blocks ? take(text, ",threads=") : std::nullopt;
    if (!threads || text != ")") return {};
    return GpuAlgorithm{GpuAlgorithm::Engine::kernels, method, *blocks, *threads};
  }
  return {};
}

PlannedGpuAlgorithms::PlannedGpuAlgorithms(const Chooser* chooser, int ranks) {
  if (chooser == nullptr) return;
  for (std::size_t operation = 0; operation < rows_.size(); ++operation) {
    // A reduce is one half of an all_reduce by the same kernels: it has no measurements of its own.
    const auto each = static_cast<Collective>(operation);
    const std::string_view measured = name(each == Collective::reduce ? Collective::all_reduce : each);
    for (const CollectiveRow& row : chooser->plan().collectives)
      if (row.ranks == ranks && row.memory == "gpu" && row.operation == measured)
        if (const auto way = parse_gpu_algorithm(row.way))
          rows_[operation].push_back({row.from_bytes, row.to_bytes, *way});
  }
}

const GpuAlgorithm* PlannedGpuAlgorithms::find(Collective operation, Bytes bytes) const noexcept {
  for (const Row& row : rows_[static_cast<std::size_t>(operation)])
    if (bytes >= row.from && bytes <= row.to) return &row.way;
  return nullptr;
}

}  // namespace waywiser
