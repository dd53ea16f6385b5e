#include <algorithm>
#include <map>

#include "waywiser/base/error.hpp"
#include "waywiser/sim/collective_run.hpp"
#include "waywiser/sim/runner.hpp"

// Reduction in the switches (Graham et al., SHARP, COMHPC 2016): each NIC sends its n bytes once and receives the sum
// once. A rail's share is one flow that crosses every hop of the rail's tree at the same rate, up and down:
//   T(n) = 2 (g - 1)/g n / r_node  +  n / rails / min(hops of the tree)  +  2 depth (switch.latency + switch.reduce)
// with g GPUs a node and the three terms overlapped over pieces of the buffer. r_node: rate out of a GPU within its
// node.

namespace waywiser::sim {
namespace {

constexpr Bytes pieces = 16, least_piece = 65536;

Leg inside(const RankRoads& roads, int ranks, const std::string& what) {
  Leg leg;
  leg.unit = what;
  const int group = std::min(roads.ranks_of_node(), ranks);
  if (group < 2) return leg;
  const Road road = roads.road(0, 1);
  leg.latency = road.latency;
  leg.cap = roads.slowest(road) * group / (group - 1);
  return leg;
}

struct Rail {
  std::vector<Port> ports;
  std::vector<Use> uses;
  Seconds latency = 0;
};

// The first rank of each node that uses a NIC stands for it.
std::map<std::string, Rail> rails_of(const World& world, const RankRoads& roads, int ranks) {
  std::map<std::string, Rail> rails;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string& nic = roads.nic(rank);
    Rail& rail = rails[nic];
    if (!rail.ports.empty() && rail.ports.back().node == roads.node_of(rank)) continue;
    const auto index = std::ranges::find(world.rails(), nic) - world.rails().begin();
    rail.ports.push_back({roads.node_of(rank), static_cast<int>(index)});
    const Road out = roads.to_nic(rank), in = roads.from_nic(rank);
    rail.uses.insert(rail.uses.end(), out.uses.begin(), out.uses.end());
    rail.uses.insert(rail.uses.end(), in.uses.begin(), in.uses.end());
    rail.latency = std::max(rail.latency, out.latency + in.latency);
  }
  return rails;
}

}  // namespace

Ran in_network_all_reduce(World& world, const RankRoads& roads, int ranks, Bytes bytes, Trace* trace) {
  if (world.nodes() < 2 || ranks <= roads.ranks_of_node())
    throw Error(ErrorKind::unavailable, "in_network: the ranks are in one node");
  const Costs& costs = world.node().costs();
  std::map<std::string, Rail> rails = rails_of(world, roads, ranks);
  Runner runner(world, trace);
  std::vector<std::size_t> numbers;
  const Bytes share = std::max<Bytes>(1, bytes / rails.size());
  for (auto& [nic, rail] : rails) {
    const Crossing tree = world.network().tree_over(rail.ports);
    Leg leg;
    leg.unit = "tree of " + nic;
    leg.uses = rail.uses;
    for (const LinkId link : tree.links) leg.uses.push_back({link, 1});
    const int depth = (tree.switches + 1) / 2;
    leg.latency = rail.latency + 2 * depth * (costs["switch.latency"] + costs["switch.reduce"]) + costs["nic.latency"] +
                  costs["step.network"];
    Program program;
    program.cpu = "driver of " + nic;
    program.chunk = std::max(least_piece, share / pieces);
    program.legs = {inside(roads, ranks, nic + " reduce in the node"), leg,
                    inside(roads, ranks, nic + " gather in the node")};
    numbers.push_back(runner.add(program, share, 1));
  }
  runner.run();
  Ran ran;
  for (const std::size_t number : numbers) ran.seconds = std::max(ran.seconds, runner.ended(number));
  ran.seconds += costs["kernel.issue"] + costs["kernel.finish"];
  ran.messages = world.engine().flows();
  ran.rounds = ran.rounds_run = 1;
  ran.bytes = world.engine().bytes_moved();
  return ran;
}

}  // namespace waywiser::sim
