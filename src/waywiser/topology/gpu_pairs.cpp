#include "waywiser/topology/gpu_pairs.hpp"

#include <algorithm>

#include "waywiser/topology/pair_group.hpp"
#include "waywiser/topology/relation.hpp"
#include "waywiser/topology/route.hpp"

namespace waywiser {
namespace {

constexpr double odd_share = 0.9;  // of the median of its class: slower is odd, anything else counts as alike

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// The slower one of both directions; 0 if neither was measured.
double slower_direction(const MeasuredRates& measured, const std::string& a, const std::string& b) {
  double rate = 0;
  for (const auto& key : {std::pair(a, b), std::pair(b, a)})
    if (const auto found = measured.find(key); found != measured.end())
      rate = rate == 0 ? found->second : std::min(rate, found->second);
  return rate;
}

}  // namespace

GpuPairs::GpuPairs(const Topology& topology, const std::vector<std::string>& gpus, const MeasuredRates& measured)
    : gpus_(gpus), pairs_(gpus.size() * gpus.size()) {
  look(Graph(topology), !measured.empty());
  if (!measured.empty()) enter(topology, measured);
}

void GpuPairs::look(const Graph& graph, bool beside_measured) {
  for (std::size_t i = 0; i < gpus_.size(); ++i)
    for (std::size_t j = 0; j < gpus_.size(); ++j) {
      if (i == j) continue;
      const std::string &a = gpus_[i], &b = gpus_[j];
      const bool connected = !graph.walk(a, b).empty();
      GpuPair& pair = this->pair(i, j);
      pair.links = graph.gpu_links(a, b);
      pair.links_known = graph.gpu_links_known(a, b);
      pair.distance = distance(relation(graph, a, b));
      if (!connected) continue;
      const Route between = route(graph, a, b);
      pair.rate = (beside_measured ? between.achievable : between.limit).value_or(between.limit.value_or(0));
    }
}

void GpuPairs::enter(const Topology& topology, const MeasuredRates& measured) {
  const auto number = [&](const std::string& id) {
    return static_cast<std::size_t>(std::ranges::find(gpus_, id) - gpus_.begin());
  };
  for (const PairGroup& group : pair_groups(topology, SamePlace::left_out)) {
    std::vector<double> rates;
    for (const auto& [a, b] : group.members)
      if (const double rate = slower_direction(measured, a, b); rate > 0) rates.push_back(rate);
    if (rates.empty()) continue;
    const double typical = median(rates);
    for (const auto& [a, b] : group.members) {
      if (number(a) == gpus_.size() || number(b) == gpus_.size()) break;  // a class of pairs with a host
      const double rate = slower_direction(measured, a, b);
      GpuPair& pair = this->pair(number(a), number(b));
      pair.measured = rate > 0;
      pair.odd = pair.measured && rate < odd_share * typical;
      pair.typical = typical;
      pair.rate = pair.odd ? rate : typical;
    }
  }
}

std::vector<std::pair<std::size_t, std::size_t>> GpuPairs::odd() const {
  std::vector<std::pair<std::size_t, std::size_t>> found;
  for (std::size_t i = 0; i < gpus_.size(); ++i)
    for (std::size_t j = i + 1; j < gpus_.size(); ++j)
      if (at(i, j).odd || at(j, i).odd) found.emplace_back(i, j);
  return found;
}

bool GpuPairs::all_links_known() const { return std::ranges::all_of(pairs_, &GpuPair::links_known); }

std::string GpuPairs::link_words() const {
  return std::ranges::any_of(pairs_, [](const GpuPair& pair) { return pair.links.kind == "xgmi"; }) ? "xGMI" : "NVLink";
}

std::string GpuPairs::slurm_links(std::size_t gpu) const {
  std::string text;
  for (std::size_t other = 0; other < gpus_.size(); ++other)
    text += (other == 0 ? "" : ",") + std::to_string(other == gpu ? -1 : at(gpu, other).links.count);
  return text;
}

bool is_amd(const Device& gpu) {
  const auto found = gpu.attributes.find("pci");
  return found != gpu.attributes.end() && found->second.starts_with("1002:");
}

}  // namespace waywiser
