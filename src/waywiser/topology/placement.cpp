#include "waywiser/topology/placement.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "waywiser/base/error.hpp"
#include "waywiser/topology/gpu_pairs.hpp"
#include "waywiser/topology/relation.hpp"

namespace waywiser {
namespace {

constexpr std::size_t most_for_exact = 16;

// The criteria in order; larger is better for each.
struct Score {
  int sound = 0;  // minus the pairs that are slower than their like, or have neither NVLink nor xGMI
  double slowest = 0;
  double all = 0;
  int links = 0;
  int closeness = 0;  // minus the sum of distances
  int nic_closeness = 0;
  auto operator<=>(const Score&) const = default;
};

class Pairs {
 public:
  Pairs(const Topology& topology, bool nics, const MeasuredRates& measured)
      : gpus(topology.ids("gpu")), links_(topology, gpus, measured) {
    const Graph graph(topology);
    const std::vector<std::string> all_nics = nics ? topology.ids("nic") : std::vector<std::string>{};
    for (const std::string& gpu : gpus) {
      int closest = distance("SYS");
      for (const std::string& nic : all_nics) closest = std::min(closest, distance(relation(graph, gpu, nic)));
      nic_distance_.push_back(all_nics.empty() ? 0 : closest);
    }
  }

  const GpuPair& at(std::size_t i, std::size_t j) const { return links_.at(i, j); }
  const GpuPairs& all() const { return links_; }

  Score score(const std::vector<std::size_t>& chosen) const {
    Score score;
    bool first = true;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      score.nic_closeness -= nic_distance_[chosen[i]];
      for (std::size_t j = i + 1; j < chosen.size(); ++j) {
        const GpuPair& pair = at(chosen[i], chosen[j]);
        score.sound -= pair.links.count > 0 && !pair.odd ? 0 : 1;
        score.slowest = first ? pair.rate : std::min(score.slowest, pair.rate);
        score.all += pair.rate;
        score.links += pair.links.count;
        score.closeness -= pair.distance;
        first = false;
      }
    }
    return score;
  }

  std::vector<std::string> gpus;

 private:
  GpuPairs links_;
  std::vector<int> nic_distance_;
};

std::vector<std::size_t> first_numbers(std::size_t count) {
  std::vector<std::size_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), std::size_t{0});
  return numbers;
}

// The next set of numbers below n in lexicographic order.
bool next_set(std::vector<std::size_t>& chosen, std::size_t n) {
  for (std::size_t i = chosen.size(); i-- > 0;) {
    if (chosen[i] + (chosen.size() - i) >= n) continue;
    ++chosen[i];
    for (std::size_t j = i + 1; j < chosen.size(); ++j) chosen[j] = chosen[j - 1] + 1;
    return true;
  }
  return false;
}

std::vector<std::size_t> best_of_all(const Pairs& pairs, std::size_t count) {
  std::vector<std::size_t> chosen = first_numbers(count);
  std::vector<std::size_t> best = chosen;
  Score best_score = pairs.score(best);
  while (next_set(chosen, pairs.gpus.size())) {
    const Score score = pairs.score(chosen);
    if (score > best_score) {
      best = chosen;
      best_score = score;
    }
  }
  return best;
}

// Starts from the first GPUs and swaps while that helps.
std::vector<std::size_t> improved_by_swaps(const Pairs& pairs, std::size_t count) {
  std::vector<std::size_t> best = first_numbers(count);
  Score best_score = pairs.score(best);
  for (bool better = true; better;) {
    better = false;
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t gpu = 0; gpu < pairs.gpus.size(); ++gpu) {
        if (std::ranges::find(best, gpu) != best.end()) continue;
        std::vector<std::size_t> changed = best;
        changed[i] = gpu;
        const Score score = pairs.score(changed);
        if (score > best_score) {
          best = changed;
          best_score = score;
          better = true;
        }
      }
    }
  }
  std::ranges::sort(best);
  return best;
}

std::string cores_of(const Topology& topology, const Device& gpu) {
  if (!gpu.cores.empty()) return gpu.cores;
  for (const Device& device : topology.devices)
    if (device.kind == "host" && device.numa == gpu.numa && gpu.numa >= 0) return device.cores;
  return "";
}

// gres.conf counts cores, not hyperthreads.
std::string core_numbers_of(const Topology& topology, const Device& gpu) {
  for (const Device& device : topology.devices) {
    if (device.kind != "host" || device.numa != gpu.numa || gpu.numa < 0) continue;
    if (const auto found = device.attributes.find("core_numbers"); found != device.attributes.end())
      return found->second;
  }
  return cores_of(topology, gpu);
}

int index_of(const Device& gpu) { return std::stoi(gpu.id.substr(3)); }

// Closest first, then the one that serves fewest GPUs so far, then the lowest number.
void give_nics(const Topology& topology, std::vector<PlacedGpu>& gpus) {
  const Graph graph(topology);
  std::map<std::string, int> served;
  for (PlacedGpu& gpu : gpus) {
    std::tuple<int, int> best{};
    for (const std::string& nic : topology.ids("nic")) {
      const std::string word = relation(graph, gpu.gpu, nic);
      const std::tuple<int, int> cost{distance(word), served[nic]};
      if (!gpu.nic.empty() && cost >= best) continue;
      best = cost;
      gpu.nic = nic;
      gpu.nic_relation = word;
    }
    if (!gpu.nic.empty()) ++served[gpu.nic];
  }
}

std::string words(const GpuPairs& pairs, std::size_t i, std::size_t j) {
  const GpuPair& pair = pairs.at(i, j);
  std::string text = pairs.name(i, j) + ": " + (pair.rate > 0 ? format_rate(pair.rate) : "rate not known");
  if (pair.measured) text += " measured";
  if (!pair.links_known) text += "; whether NVLinks join them is not known";
  return text;
}

std::string of_pairs(int some, std::size_t all) {
  return std::to_string(some) + " of " + std::to_string(all) + " pairs";
}

void explain_links(Placement& placement, const Pairs& pairs, const std::vector<std::size_t>& chosen) {
  const std::size_t number = chosen.size() * (chosen.size() - 1) / 2;
  const std::string kind = pairs.all().link_words();
  const int without = placement.pairs_without_nvlink - placement.pairs_unknown;
  if (placement.pairs_unknown > 0)
    placement.why.push_back("whether NVLinks join " + of_pairs(placement.pairs_unknown, number) +
                            " is not known: nothing tells");
  if (without > 0)
    placement.why.push_back(of_pairs(without, number) + " have no " + kind +
                            (placement.exact && placement.odd.empty() ? "; no choice has fewer" : ""));
  if (placement.pairs_without_nvlink == 0)
    placement.why.push_back((number == 1 ? "the pair has " : "all " + std::to_string(number) + " pairs have ") + kind);
}

void explain_odd(Placement& placement, const Pairs& pairs, const std::vector<std::size_t>& chosen) {
  for (const auto& [i, j] : pairs.all().odd()) {
    const GpuPair& pair = pairs.at(i, j);
    placement.odd.push_back({pairs.gpus[i], pairs.gpus[j], pair.rate, pair.typical});
    if (placement.odd.size() > 16) continue;
    const bool both = std::ranges::count(chosen, i) != 0 && std::ranges::count(chosen, j) != 0;
    placement.why.push_back(pairs.all().name(i, j) + " is odd: " + format_rate(pair.rate) +
                            " measured, pairs like it " + format_rate(pair.typical) +
                            (both ? "; no better choice avoids it" : "; avoided"));
  }
}

void explain(Placement& placement, const Pairs& pairs, const std::vector<std::size_t>& chosen) {
  const Score score = pairs.score(chosen);
  placement.slowest_pair = score.slowest;
  placement.all_pairs = score.all;
  for (std::size_t i = 0; i < chosen.size(); ++i)
    for (std::size_t j = i + 1; j < chosen.size(); ++j) {
      placement.pairs_without_nvlink += pairs.at(chosen[i], chosen[j]).links.count == 0;
      placement.pairs_unknown += !pairs.at(chosen[i], chosen[j]).links_known;
    }
  const std::string among = std::to_string(pairs.gpus.size()) + " GPUs";
  placement.why.push_back(placement.exact ? "every choice among " + among + " was compared"
                                          : "more than 16 GPUs: the best of " + among + " by swaps, not proven best");
  explain_odd(placement, pairs, chosen);
  if (chosen.size() < 2) return;
  explain_links(placement, pairs, chosen);
  if (score.slowest > 0)
    placement.why.push_back("slowest pair " + format_rate(score.slowest) + ", all pairs together " +
                            format_rate(score.all) + " per direction");
  for (std::size_t i = 0; i < chosen.size() && chosen.size() <= 4; ++i)
    for (std::size_t j = i + 1; j < chosen.size(); ++j)
      placement.why.push_back(words(pairs.all(), chosen[i], chosen[j]));
}

std::string slurm_type(const std::string& name) {
  std::string type;
  for (const char c : name) {
    const bool upper = c >= 'A' && c <= 'Z';
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (upper || plain)
      type += upper ? static_cast<char>(c - 'A' + 'a') : c;
    else if (!type.empty() && type.back() != '_')
      type += '_';
  }
  while (!type.empty() && type.back() == '_') type.pop_back();
  return type.starts_with("nvidia_") ? type.substr(7) : type;
}

}  // namespace

std::vector<std::string> gres_conf(const Topology& topology) {
  const std::vector<std::string> gpus = topology.ids("gpu");
  const GpuPairs pairs(topology, gpus, {});
  std::vector<std::string> lines;
  if (std::ranges::any_of(gpus, [&](const std::string& id) { return is_amd(topology.at(id)); }))
    return {"# AMD GPUs: slurmd finds their device files and links by itself", "AutoDetect=rsmi"};
  const bool known = pairs.all_links_known();
  if (!known)
    lines.emplace_back("# Links= is left out: which NVLinks these GPUs have is not known; AutoDetect=nvml finds them");
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const Device& gpu = topology.at(gpus[i]);
    std::string line = "Name=gpu";
    if (const std::string type = slurm_type(gpu.name); !type.empty()) line += " Type=" + type;
    line += " File=/dev/nvidia" + std::to_string(index_of(gpu));
    if (const std::string cores = core_numbers_of(topology, gpu); !cores.empty()) line += " Cores=" + cores;
    if (known) line += " Links=" + pairs.slurm_links(i);
    lines.push_back(line);
  }
  return lines;
}

Placement place_gpus(const Topology& topology, int count, bool nics, const MeasuredRates& measured) {
  const Pairs pairs(topology, nics, measured);
  if (count < 1) throw Error(ErrorKind::invalid_input, "the number of GPUs must be at least 1");
  if (static_cast<std::size_t>(count) > pairs.gpus.size())
    throw Error(ErrorKind::invalid_input, "machine " + topology.name + " has " + std::to_string(pairs.gpus.size()) +
                                              " GPUs, " + std::to_string(count) + " were asked for");
  Placement placement;
  placement.exact = pairs.gpus.size() <= most_for_exact;
  const auto wanted = static_cast<std::size_t>(count);
  const std::vector<std::size_t> chosen =
      placement.exact ? best_of_all(pairs, wanted) : improved_by_swaps(pairs, wanted);
  std::set<std::string> cores;
  for (const std::size_t number : chosen) {
    const Device& gpu = topology.at(pairs.gpus[number]);
    placement.gpus.push_back({gpu.id, index_of(gpu), gpu.numa, cores_of(topology, gpu), "", ""});
    placement.cuda_visible_devices += (placement.gpus.size() > 1 ? "," : "") + std::to_string(index_of(gpu));
    if (const std::string& list = placement.gpus.back().cores; cores.insert(list).second && !list.empty())
      placement.cores += (placement.cores.empty() ? "" : ",") + list;
  }
  if (nics) give_nics(topology, placement.gpus);
  explain(placement, pairs, chosen);
  placement.gres_conf = gres_conf(topology);
  return placement;
}

}  // namespace waywiser
