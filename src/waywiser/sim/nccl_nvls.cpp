#include "waywiser/sim/nccl_nvls.hpp"

#include <algorithm>
#include <set>

#include "waywiser/base/error.hpp"
#include "waywiser/collective/double_tree.hpp"
#include "waywiser/sim/nccl_protocols.hpp"
#include "waywiser/sim/runner.hpp"

namespace waywiser::sim {
namespace {

// NCCL 2.30.7, src/transport/nvls.cc: of Hopper; src/enqueue.cc: shorter chunks of short messages.
constexpr Bytes channels = 16, largest_chunk = 131072, largest_chunk_of_many = 65536, smallest_chunk = 16384;
constexpr int many_nodes = 4;
// Of more pieces the pipeline is full for most of the time.
constexpr Bytes most_pieces = 256, most_pieces_of_many_nodes = 16;

std::string adding_switch(const Topology& topology) {
  for (const std::string& id : topology.ids("nvswitch")) {
    const auto& attributes = topology.at(id).attributes;
    if (const auto found = attributes.find("reduces"); found != attributes.end() && found->second == "yes") return id;
  }
  throw Error(ErrorKind::unavailable, "the machine file has no NVSwitch with the attribute reduces: yes");
}

// What a head handles at a time.
Bytes piece_of(Bytes bytes, int nodes, Bytes heads) {
  const auto below = [&](Bytes rounds, Bytes chunk) { return bytes < rounds * channels * heads * chunk; };
  Bytes chunk = nodes < many_nodes ? largest_chunk : largest_chunk_of_many;
  if (nodes > 1) {
    if (chunk > 65536 && below(4, chunk)) chunk = 65536;
    if (below(1, chunk)) chunk = 32768;
  } else {
    if (below(64, chunk)) chunk = 65536;
    if (below(8, chunk)) chunk = 32768;
    if (below(2, chunk)) chunk = smallest_chunk;
  }
  const Bytes pieces = nodes > 128 ? most_pieces_of_many_nodes : most_pieces;
  return std::max(channels * chunk, (bytes / heads + pieces - 1) / pieces);
}

// A GPU of a node, and the routes by which it uses its NIC.
struct HeadGpu {
  const RankRoutes* routes;
  int position;
};

// The first GPU beside each NIC; within one node all GPUs.
std::vector<HeadGpu> heads_of(const std::vector<RankRoutes>& turns, int nodes, int ranks) {
  std::vector<HeadGpu> heads;
  std::set<std::string> rails;
  for (const RankRoutes& routes : turns)
    for (int position = 0; position < ranks / nodes; ++position)
      if (nodes == 1 || rails.insert(routes.nic(position)).second) heads.push_back({&routes, position});
  return heads;
}

// One of them, until a turn has no NIC that those before have not.
std::vector<RankRoutes> turns_of(World& world, const CollectiveTrial& trial, const std::vector<std::string>& order,
                                 bool all) {
  std::vector<RankRoutes> turns;
  for (std::set<std::string> rails; turns.empty() || all;) {
    RankRoutes next(world, {trial.direct, trial.pxn, PeerCopies::best, trial.first_node},
                    {{order, static_cast<int>(turns.size())}});
    const std::size_t before = rails.size();
    for (int position = 0; position < next.ranks_of_node(); ++position) rails.insert(next.nic(position));
    if (rails.size() == before) break;
    turns.push_back(std::move(next));
  }
  return turns;
}

// The legs of a head's part of the bytes.
class HeadLegs {
 public:
  HeadLegs(World& world, const HeadGpu& head, int nodes, int ranks)
      : world_(world), routes_(*head.routes), head_(head.position), nodes_(nodes), of_node_(ranks / nodes) {}

  std::vector<Leg> all() const {
    std::vector<Leg> legs{within(false, "adds")};
    if (nodes_ > 1) legs.insert(legs.end(), {between(false, "up"), between(true, "down")});
    legs.push_back(within(true, "writes"));
    return legs;
  }

 private:
  Leg named(const std::string& what) const {
    Leg leg;
    leg.unit = routes_.device(head_) + " by " + routes_.nic(head_) + " " + what;
    return leg;
  }

  // All GPUs to the head through the NVSwitch, which adds; and back, which copies.
  Leg within(bool back, const std::string& what) const {
    Leg leg = named(what);
    for (int first = 0; first < nodes_ * of_node_; first += of_node_) {
      const int node = routes_.node_of(first);
      const NodeModel& model = world_.node(node);
      const std::string nvswitch = adding_switch(model.topology());
      leg.latency = std::max(leg.latency, model.costs()["nccl.nvls_start"] / 2);
      for (int position = -1; position < of_node_; ++position) {
        const std::string& gpu = routes_.device(first + (position < 0 ? head_ : position));
        const bool out = (position < 0) == back;
        add(leg.uses, out ? world_.route(node, gpu, nvswitch) : world_.route(node, nvswitch, gpu), weight(model, gpu));
      }
    }
    merge(leg.uses);
    return leg;
  }

  // So that the NVLinks of a GPU carry what NCCL reckons.
  static double weight(const NodeModel& model, const std::string& gpu) {
    const Costs& costs = model.costs();
    const double share = costs["nccl.nvls_share"] > 0 ? costs["nccl.nvls_share"] : 1;
    const BytesPerSecond links = model.nvlink_rate(gpu);
    return links / (std::min(links, nccl_nvlink_rate(model)) * share);
  }

  // Half of the part over each of two trees of the nodes, all of its edges at once.
  Leg between(bool back, const std::string& what) const {
    const Costs& costs = world_.node().costs();
    Leg leg = named(what);
    leg.latency = log2_floor(nodes_) * costs["nccl.nvls_tree_start"];
    for (const int tree : {0, 1})
      for (int node = 0; node < nodes_; ++node) {
        const int parent = node_of_tree(tree, nodes_, node).parent;
        if (parent < 0) continue;
        const int own = node * of_node_ + head_, other = parent * of_node_ + head_;
        const TimedRoute edge = back ? routes_.route(other, own) : routes_.route(own, other);
        add(leg.uses, edge, 0.5);
        leg.cap = std::min(leg.cap, edge.cap / 0.5);
      }
    merge(leg.uses);
    const int ranks = nodes_ * of_node_;
    const double rail = costs[nodes_ == 2 ? "nccl.nvls_tree_rate_of_two" : "nccl.nvls_tree_rate_of_more"];
    if (rail > 0) leg.cap = std::min(leg.cap, rail * ranks / (2.0 * (ranks - 1)));
    return leg;
  }

  World& world_;
  const RankRoutes& routes_;
  int head_, nodes_, of_node_;
};

void check(const CollectiveTrial& trial, const RankRoutes& routes, int ranks) {
  const bool tree = trial.algorithm == "nccl_nvls_tree";
  const int of_node = routes.ranks_of_node();
  if (trial.operation != Collective::all_reduce)
    throw Error(ErrorKind::unavailable, trial.algorithm + ": all_reduce only");
  if (tree ? ranks <= of_node || ranks % of_node != 0 : ranks > of_node || ranks < 2)
    throw Error(ErrorKind::unavailable,
                trial.algorithm + (tree ? ": needs all GPUs of several nodes" : ": needs ranks of one node"));
}

}  // namespace

bool of_nvls(std::string_view algorithm) { return algorithm == "nccl_nvls" || algorithm == "nccl_nvls_tree"; }

Ran nvls_all_reduce(World& world, const CollectiveTrial& trial, int ranks, Trace* trace) {
  const std::vector<std::vector<std::string>> groups =
      trial.groups.empty() ? std::vector<std::vector<std::string>>{trial.order} : trial.groups;
  Runner runner(world, trace);
  std::vector<std::size_t> numbers;
  for (const std::vector<std::string>& order : groups) {
    const bool tree = trial.algorithm == "nccl_nvls_tree";
    const std::vector<RankRoutes> turns = turns_of(world, trial, order, tree);
    check(trial, turns.front(), ranks);
    const int nodes = tree ? ranks / turns.front().ranks_of_node() : 1;
    const std::vector<HeadGpu> heads = heads_of(turns, nodes, ranks);
    for (const HeadGpu& head : heads) {
      Program program;
      program.cpu = head.routes->device(head.position);
      program.chunk = piece_of(trial.bytes, nodes, heads.size());
      program.legs = HeadLegs(world, head, nodes, ranks).all();
      numbers.push_back(runner.add(program, std::max<Bytes>(1, trial.bytes / heads.size()), 1));
    }
  }
  runner.run();
  Ran ran;
  for (const std::size_t number : numbers) ran.seconds = std::max(ran.seconds, runner.ended(number));
  ran.messages = world.engine().flows();
  ran.rounds = ran.rounds_run = 1;
  ran.bytes = world.engine().bytes_moved();
  return ran;
}

}  // namespace waywiser::sim
