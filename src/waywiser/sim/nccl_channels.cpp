#include "waywiser/sim/nccl_channels.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "waywiser/collective/double_tree.hpp"
#include "waywiser/collective/extents.hpp"
#include "waywiser/collective/schedule_maker.hpp"

namespace waywiser::sim {
namespace {

constexpr int children_most = 3;  // two nodes and the next GPU of the own one
// NCCL cuts a channel's bytes into steps of 512 KiB (NCCL_BUFFSIZE of 4 MiB has 8). Here a long message is cut into
// fewer and longer pieces, since each is a message of the simulation: a pipeline of so many is full for most of the
// time.
constexpr std::size_t step_elements = (512 << 10) / 4, pieces_most = 64, pieces_of_many_ranks = 16;
constexpr int many_ranks = 1024;

// A rank's place in a tree of nodes whose GPUs are chains.
struct TreePlace {
  int parent = -1;
  int slot = 0;  // which child of its parent
  int level = 0;
  std::vector<int> children;  // by their slots
};

TreePlace place_in_tree(int tree, int ranks, int ranks_of_node, int rank) {
  const int node = rank / ranks_of_node, position = rank % ranks_of_node;
  const TreeNode of_node = node_of_tree(tree, ranks / ranks_of_node, node);
  TreePlace place{-1, 0, of_node.depth + position, {}};
  if (position > 0) {
    place.parent = rank - 1;
    place.slot = children_most - 1;
  } else {
    if (of_node.parent >= 0) place.parent = of_node.parent * ranks_of_node;
    place.slot = of_node.right ? 1 : 0;
    for (const int child : of_node.children) place.children.push_back(child * ranks_of_node);
  }
  if (position + 1 < ranks_of_node) place.children.push_back(rank + 1);
  return place;
}

int pieces_of_tree(const CollectiveCall& call) {
  const std::size_t chunk = call.chunk != 0 ? call.chunk : step_elements;
  const std::size_t most = call.ranks > many_ranks ? pieces_of_many_ranks : pieces_most;
  return static_cast<int>(std::clamp<std::size_t>((call.count + chunk - 1) / chunk, 1, most));
}

constexpr int searched_gpus = 9;  // 40,320 orders

// Something of each ordered pair of GPUs.
class OfPairs {
 public:
  explicit OfPairs(int gpus) : gpus_(gpus), values_(static_cast<std::size_t>(gpus) * static_cast<std::size_t>(gpus)) {}
  double& at(int from, int to) { return values_[static_cast<std::size_t>(from * gpus_ + to)]; }
  int gpus() const noexcept { return gpus_; }

 private:
  int gpus_;
  std::vector<double> values_;
};

// The cycle whose least pair is the largest, then whose pairs are so in sum; and that least value.
std::pair<double, std::vector<int>> largest_cycle(OfPairs& of) {
  std::vector<int> order(static_cast<std::size_t>(of.gpus())), chosen;
  std::iota(order.begin(), order.end(), 0);
  std::pair<double, double> best{-1, 0};
  do {
    std::pair<double, double> found{no_cap, 0};
    for (std::size_t i = 0; i < order.size(); ++i) {
      const double one = of.at(order[i], order[(i + 1) % order.size()]);
      found = {std::min(found.first, one), found.second + one};
    }
    if (found > best) std::tie(best, chosen) = std::pair(found, order);
  } while (std::next_permutation(order.begin() + 1, order.end()));
  return {best.first, chosen};
}

// By the rates between the GPUs; as numbered where all pairs are alike, or the GPUs are too many to try all orders.
std::vector<std::string> fastest_cycle(const RankRoutes& routes) {
  OfPairs rates(routes.ranks_of_node());
  std::set<BytesPerSecond> different;
  for (int from = 0; from < rates.gpus(); ++from)
    for (int to = 0; to < rates.gpus(); ++to)
      if (from != to) different.insert(rates.at(from, to) = routes.slowest(routes.route(from, to)));
  if (different.size() < 2 || rates.gpus() > searched_gpus) return {};
  std::vector<std::string> devices;
  for (const int gpu : largest_cycle(rates).second) devices.push_back(routes.device(gpu));
  return devices;
}

// Cycles over the NVLinks from GPU to GPU, each over one link of every pair in both directions, until the links that
// are left make no cycle. None where the GPUs have NVSwitches, whose one ring already fills every link.
std::vector<std::vector<std::string>> mesh_cycles(const Topology& topology) {
  const std::vector<std::string> gpus = topology.ids("gpu");
  OfPairs links(static_cast<int>(gpus.size()));
  if (links.gpus() < 3 || links.gpus() > searched_gpus) return {};
  for (const Link& link : topology.links) {
    const auto a = std::ranges::find(gpus, link.a) - gpus.begin(), b = std::ranges::find(gpus, link.b) - gpus.begin();
    if (link.kind != "nvlink" || a == std::ssize(gpus) || b == std::ssize(gpus)) continue;
    links.at(static_cast<int>(a), static_cast<int>(b)) += link.count;
    links.at(static_cast<int>(b), static_cast<int>(a)) += link.count;
  }
  std::vector<std::vector<std::string>> cycles;
  for (auto [least, order] = largest_cycle(links); least >= 1; std::tie(least, order) = largest_cycle(links)) {
    std::vector<std::string> devices;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const int from = order[i], to = order[(i + 1) % order.size()];
      links.at(from, to) -= least;
      links.at(to, from) -= least;
      devices.push_back(gpus[static_cast<std::size_t>(from)]);
    }
    const std::vector<std::string> back(devices.rbegin(), devices.rend());
    for (int link = 0; link < static_cast<int>(least); ++link) cycles.insert(cycles.end(), {devices, back});
  }
  return cycles;
}

// One for each NIC of a type of node, of which `first` is a node: the GPUs from the one beside that NIC on.
std::vector<Seats> seats_of_rails(World& world, const CollectiveTrial& trial, RankOptions options, int first) {
  options.first_node = first;
  options.pxn = true;
  const RankRoutes numbered(world, options, {{trial.order}});
  const std::vector<std::string> order = trial.order.empty() ? fastest_cycle(numbered) : trial.order;
  std::vector<Seats> seats{{order}};
  const RankRoutes own(world, options, seats);
  std::vector<std::string> devices;
  for (int rank = 0; rank < own.ranks_of_node(); ++rank) devices.push_back(own.device(rank));
  std::set<std::string> begun{own.nic(0)};
  for (std::size_t before = 0, turn = 0; seats.size() > before; ++turn) {
    before = seats.size();
    const RankRoutes nics(world, options, {{devices, static_cast<int>(turn)}});
    for (std::size_t i = 0; i < devices.size(); ++i) {
      if (!begun.insert(nics.nic(static_cast<int>(i))).second) continue;
      std::vector<std::string> rotated = devices;
      std::ranges::rotate(rotated, rotated.begin() + static_cast<std::ptrdiff_t>(i));
      seats.push_back({std::move(rotated), static_cast<int>(turn)});
    }
  }
  return seats;
}

}  // namespace

bool of_nccl_channels(std::string_view algorithm) { return algorithm == "nccl_ring" || algorithm == "nccl_tree"; }

std::optional<std::string> why_not_nccl(const CollectiveTrial& trial, int ranks, int ranks_of_node) {
  const bool ring = trial.algorithm == "nccl_ring";
  if (trial.operation != Collective::all_reduce &&
      !(ring && (trial.operation == Collective::all_gather || trial.operation == Collective::reduce_scatter)))
    return trial.algorithm + " is not for " + std::string(name(trial.operation));
  if (ranks > ranks_of_node && ranks % ranks_of_node != 0) return trial.algorithm + ": needs all GPUs of its nodes";
  return std::nullopt;
}

std::vector<RankRoutes> nccl_channels(World& world, const CollectiveTrial& trial, PeerCopies peers, int ranks) {
  const RankOptions options{trial.direct, true, peers, trial.first_node};
  const int of_node = RankRoutes(world, options, {{trial.order}}).ranks_of_node();
  std::vector<RankRoutes> channels;
  if (trial.order.empty() && ranks == of_node)
    for (const std::vector<std::string>& cycle : mesh_cycles(world.node(trial.first_node).topology()))
      channels.emplace_back(world, options, std::vector<Seats>{{cycle}});
  if (!channels.empty()) return channels;
  std::map<int, std::vector<Seats>> of_types;
  std::size_t count = ranks <= of_node ? 1 : SIZE_MAX;
  for (int node = 0; node < std::max(1, ranks / of_node); ++node) {
    const int type = world.type(trial.first_node + node);
    if (!of_types.contains(type)) of_types[type] = seats_of_rails(world, trial, options, trial.first_node + node);
    count = std::min(count, of_types[type].size());
  }
  for (std::size_t channel = 0; channel < count; ++channel) {
    std::vector<Seats> seats(world.types().size(), Seats{trial.order});
    for (const auto& [type, one] : of_types) seats[static_cast<std::size_t>(type)] = one[channel];
    channels.emplace_back(world, options, seats);
  }
  return channels;
}

// Piece k goes up from level l in round 1 + 3 (L - l) + slot + k, and down to level l in round 3 L + l + k: within a
// round each rank handles different pieces.
Schedule nccl_tree(const CollectiveCall& call, int ranks_of_node, int tree) {
  ScheduleMaker maker("nccl_tree", call);
  const int of_node = std::min(ranks_of_node, call.ranks);
  const TreePlace own = place_in_tree(tree, call.ranks, of_node, call.rank);
  const int deepest = log2_floor(call.ranks / of_node) + of_node - 1;
  const Extents pieces(call.count, pieces_of_tree(call));
  const auto up = [&](int level, int slot, int piece) {
    return static_cast<std::uint32_t>(1 + children_most * (deepest - level) + slot + piece);
  };
  const auto down = [&](int level, int piece) {
    return static_cast<std::uint32_t>(children_most * deepest + level + piece);
  };
  for (int piece = 0; piece < pieces.parts(); ++piece) {
    const Block block = pieces.block(Area::output, piece);
    for (const int child : own.children) {
      maker.receive_reduce(up(own.level + 1, place_in_tree(tree, call.ranks, of_node, child).slot, piece), child,
                           block);
      maker.send(down(own.level + 1, piece), child, block);
    }
    if (own.parent < 0) continue;
    maker.send(up(own.level, own.slot, piece), own.parent, block);
    maker.receive(down(own.level, piece), own.parent, block);
  }
  return maker.finish();
}

}  // namespace waywiser::sim
