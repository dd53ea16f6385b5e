#include <algorithm>
#include <map>
#include <set>

#include "waywiser/base/error.hpp"
#include "waywiser/sim/collective_run.hpp"
#include "waywiser/sim/runner.hpp"

// Reduction in the switches (Graham et al., SHARP, COMHPC 2016): each NIC sends its n bytes once and receives the sum
// once. A rail has an equal share of the bytes; m of the g GPUs of a node feed its NIC, n / m each. Per byte of a share
//   the GPUs of a node give to each of the m what is its part:   1/m over every hop from the g - 1 others to it,
//   one tree of switches for the rail:                           once over every hop, up and down,
//   and the m give their part of the sum to the g - 1 others:    1/m over every hop back,
// three legs, each at one rate in all nodes, overlapped over pieces of the share:
//   T(n) = the legs' bytes over their slowest hops, which all rails share, + 2 depth (switch.latency + switch.reduce)
// A node whose GPUs use none of a rail's NICs serves that rail through another NIC.

namespace waywiser::sim {
namespace {

constexpr Bytes pieces_of_share = 16, least_piece = 65536;

struct Inside {
  std::vector<Use> uses;
  BytesPerSecond cap = no_cap;
  Seconds latency = 0;
};

struct Rail {
  std::vector<Port> ports;
  std::vector<Use> uses;
  Seconds latency = 0;
  Inside reduce, gather;
};

class Rails {
 public:
  Rails(const World& world, const RankRoutes& routes, int ranks) : world_(world), routes_(routes), ranks_(ranks) {
    for (int rank = 0; rank < ranks; ++rank) rails_[routes.nic(rank)];
    for (int first = 0; first < ranks; first += routes.ranks_of_node()) add_node(first);
    for (auto& [nic, rail] : rails_)
      for (std::vector<Use>* uses : {&rail.uses, &rail.reduce.uses, &rail.gather.uses}) merge(*uses);
  }
  const std::map<std::string, Rail>& all() const { return rails_; }

 private:
  void add_node(int first) {
    const int end = std::min(first + routes_.ranks_of_node(), ranks_);
    std::map<std::string, std::vector<int>> feeding;
    for (int rank = first; rank < end; ++rank) feeding[routes_.nic(rank)].push_back(rank);
    std::size_t number = 0;
    for (auto& [nic, rail] : rails_) {
      auto members = feeding.find(nic);
      if (members == feeding.end())
        members = std::next(feeding.begin(), static_cast<std::ptrdiff_t>(number % feeding.size()));
      feed(rail, members->second);
      share_out(rail, members->second, first, end);
      ++number;
    }
  }

  void feed(Rail& rail, const std::vector<int>& members) const {
    const std::string& nic = routes_.nic(members.front());
    const std::vector<std::string>& nics = world_.rails(routes_.node_of(members.front()));
    const auto index = std::ranges::find(nics, nic) - nics.begin();
    rail.ports.push_back({world_.place(routes_.node_of(members.front())), static_cast<int>(index)});
    for (const int member : members) {
      const TimedRoute out = routes_.to_nic(member), in = routes_.from_nic(member);
      add(rail.uses, out, 1.0 / static_cast<double>(members.size()));
      add(rail.uses, in, 1.0 / static_cast<double>(members.size()));
      rail.latency = std::max(rail.latency, out.latency + in.latency);
    }
  }

  void share_out(Rail& rail, const std::vector<int>& members, int first, int end) const {
    const double each = 1.0 / static_cast<double>(members.size());
    for (const int member : members)
      for (int other = first; other < end; ++other) {
        if (other == member) continue;
        const TimedRoute to = routes_.route(other, member), back = routes_.route(member, other);
        add(rail.reduce.uses, to, each);
        add(rail.gather.uses, back, each);
        rail.reduce.latency = std::max(rail.reduce.latency, to.latency);
        rail.gather.latency = std::max(rail.gather.latency, back.latency);
      }
    const BytesPerSecond rate = routes_.model_of(first).reduce_rate();
    if (rate > 0 && end - first > 1) rail.reduce.cap = std::min(rail.reduce.cap, rate / each / (end - first - 1));
  }

  const World& world_;
  const RankRoutes& routes_;
  int ranks_;
  std::map<std::string, Rail> rails_;
};

Leg leg_of(const Inside& inside, const std::string& what) {
  Leg leg;
  leg.unit = what;
  leg.uses = inside.uses;
  leg.cap = inside.cap;
  leg.latency = inside.latency;
  return leg;
}

Leg tree_of(const World& world, const Rail& rail, const std::string& nic, std::size_t number) {
  const Costs& costs = world.node().costs();
  const SwitchTree tree = world.network().tree_over(rail.ports, number);
  Leg leg;
  leg.unit = "tree of " + nic;
  leg.uses = rail.uses;
  for (const LinkId link : tree.links) leg.uses.push_back({link, 1});
  leg.latency = rail.latency + 2 * tree.depth * (costs["switch.latency"] + costs["switch.reduce"]) +
                costs["nic.latency"] + costs["step.network"];
  return leg;
}

}  // namespace

Ran in_network_all_reduce(World& world, const RankRoutes& routes, int ranks, Bytes bytes, Trace* trace) {
  if (world.nodes() < 2 || ranks <= routes.ranks_of_node())
    throw Error(ErrorKind::unavailable, "in_network: the ranks are in one node");
  const Costs& costs = world.node().costs();
  const Rails rails(world, routes, ranks);
  Runner runner(world, trace);
  std::vector<std::size_t> numbers;
  const Bytes share = std::max<Bytes>(1, (bytes + rails.all().size() - 1) / rails.all().size());
  for (const auto& [nic, rail] : rails.all()) {
    Program program;
    program.cpu = "driver of " + nic;
    program.chunk = std::max(least_piece, share / pieces_of_share);
    program.legs = {leg_of(rail.reduce, nic + " reduce in the node"), tree_of(world, rail, nic, numbers.size()),
                    leg_of(rail.gather, nic + " gather in the node")};
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
