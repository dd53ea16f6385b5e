#include "waywiser/sim/rank_routes.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/topology/relation.hpp"
#include "waywiser/topology/route.hpp"

namespace waywiser::sim {
namespace {

std::vector<std::string> closest_to(const World& world, std::size_t type, const std::string& device) {
  std::vector<std::string> closest;
  int least = -1;
  for (const std::string& nic : world.rails_of(type)) {
    const int far = world.types()[type]->distance(device, nic);
    if (least < 0 || far < least) {
      closest.clear();
      least = far;
    }
    if (far == least) closest.push_back(nic);
  }
  return closest;
}

// The closest NIC of each device; where several are as close, the devices that share them take turns, `turn` times
// before.
std::map<std::string, std::string> closest_nics(const World& world, std::size_t type,
                                                const std::vector<std::string>& devices, int turn) {
  std::map<std::string, std::string> chosen;
  std::map<std::vector<std::string>, std::size_t> turns;
  for (int i = 0; i <= turn; ++i)
    for (const std::string& device : devices) {
      const std::vector<std::string> closest = closest_to(world, type, device);
      chosen[device] = closest.empty() ? "" : closest[turns[closest]++ % closest.size()];
    }
  return chosen;
}

}  // namespace

RankRoutes::RankRoutes(World& world, const RankOptions& options, const std::vector<Seats>& seats)
    : world_(world), options_(options) {
  for (std::size_t type = 0; type < world.types().size(); ++type)
    types_.push_back(seated(type, seats.size() == 1 ? seats.front() : seats.at(type)));
  for (const OfType& type : types_)
    if (type.devices.size() != types_.front().devices.size())
      throw Error(ErrorKind::unavailable,
                  "the nodes of a collective need as many GPUs each; --order takes some of them");
}

RankRoutes::OfType RankRoutes::seated(std::size_t type, const Seats& seats) const {
  const Topology& topology = world_.types()[type]->topology();
  OfType found{topology.ids("gpu"), {}};
  const std::vector<std::string>& order = seats.order;
  const auto twice_or_unknown = [&](const std::string& gpu) {
    return std::ranges::count(order, gpu) != 1 || std::ranges::count(found.devices, gpu) != 1;
  };
  if (std::ranges::any_of(order, twice_or_unknown))
    throw Error(ErrorKind::invalid_input, "the order must name GPUs of the node, which has " +
                                              std::to_string(found.devices.size()) + ", each once at most");
  if (found.devices.empty()) found.devices = {topology.ids("host").at(0)};
  const auto nics = closest_nics(world_, type, found.devices, seats.turn);  // the order of the ranks changes nothing
  if (!order.empty()) found.devices = order;
  for (const std::string& device : found.devices) found.nics.push_back(nics.at(device));
  return found;
}

BytesPerSecond RankRoutes::slowest(const TimedRoute& route) const {
  BytesPerSecond rate = route.cap;
  for (const Use& use : route.uses) rate = std::min(rate, world_.capacity(use.link) / use.weight);
  return rate;
}

TimedRoute RankRoutes::staged(int node, const std::string& from, const std::string& to) const {
  const bool into = from.starts_with("nic");
  const NodeModel& model = world_.node(node);
  const std::string host = model.host_beside(into ? to : from);
  TimedRoute route = world_.route(node, from, host, Links::no_gpu_fabric);
  extend(route, world_.route(node, host, to, Links::no_gpu_fabric));
  route.latency += model.costs()["ucx.copy"];
  return route;
}

TimedRoute RankRoutes::chosen(int rank, bool reads, const TimedRoute& direct, const TimedRoute& staged) const {
  if (world_.by_tcp() || !model_of(rank).direct_rdma(device(rank))) return staged;
  const DirectRdma asked = options_.direct;
  if (asked == DirectRdma::best) return slowest(direct) >= slowest(staged) ? direct : staged;
  const auto is_near = [&] { return model_of(rank).distance(device(rank), nic(rank)) <= distance("PXB"); };
  const bool on =
      asked == DirectRdma::on || (asked == DirectRdma::write && !reads) || (asked == DirectRdma::near && is_near());
  return on ? direct : staged;
}

TimedRoute RankRoutes::to_nic(int rank) const {
  TimedRoute direct = world_.route(node_of(rank), device(rank), nic(rank));
  if (!device(rank).starts_with("gpu")) return direct;
  return chosen(rank, true, direct, staged(node_of(rank), device(rank), nic(rank)));
}

TimedRoute RankRoutes::from_nic(int rank) const {
  TimedRoute direct = world_.route(node_of(rank), nic(rank), device(rank));
  if (!device(rank).starts_with("gpu")) return direct;
  return chosen(rank, false, direct, staged(node_of(rank), nic(rank), device(rank)));
}

TimedRoute RankRoutes::through_host(int node, const std::string& from, const std::string& to) const {
  const NodeModel& model = world_.node(node);
  const std::string host = model.host_beside(from);
  TimedRoute route = world_.route(node, from, host, Links::no_gpu_fabric);
  extend(route, world_.route(node, host, to, Links::no_gpu_fabric));
  route.latency += 2 * model.costs()["copy.hold"];
  return route;
}

TimedRoute RankRoutes::between_gpus(int node, const std::string& from, const std::string& to) const {
  if (options_.peers == PeerCopies::host || !world_.node(node).peer_access(from, to))
    return through_host(node, from, to);
  TimedRoute direct = world_.route(node, from, to);
  if (!direct.limited) return direct;
  TimedRoute staged = through_host(node, from, to);
  return options_.peers == PeerCopies::staged || slowest(staged) > slowest(direct) ? staged : direct;
}

TimedRoute RankRoutes::within(int node, const std::string& from, const std::string& to) const {
  TimedRoute route = from == to                ? world_.within(node, from)
                     : from.starts_with("gpu") ? between_gpus(node, from, to)
                                               : world_.route(node, from, to);
  route.latency += world_.node(node).costs()["step.start"];
  return route;
}

bool RankRoutes::could_be_staged() const {
  for (std::size_t type = 0; type < types_.size(); ++type) {
    const NodeModel& node = *world_.types()[type];
    for (const std::string& from : types_[type].devices)
      for (const std::string& to : types_[type].devices)
        if (from != to && node.peer_access(from, to) && node.route(from, to).limited) return true;
  }
  return false;
}

int RankRoutes::sender(int from, int to) const {
  const int beside = from - from % ranks_of_node() + to % ranks_of_node();
  if (!options_.pxn || nic(from) == nic(beside)) return from;
  return model_of(from).distance(device(from), device(beside)) == 0 ? beside : from;
}

TimedRoute RankRoutes::route(int from, int to) const {
  const int a = node_of(from), b = node_of(to);
  if (a == b && (!world_.share_domain(a, b) || device(from) == device(to))) return within(a, device(from), device(to));
  const Costs& costs = world_.node(a).costs();
  if (world_.share_domain(a, b)) {
    TimedRoute route = world_.over_domain(a, device(from), b, device(to));
    route.latency += costs["step.start"];
    return route;
  }
  const int by = sender(from, to);
  TimedRoute route = to_nic(by);
  if (by != from) {
    TimedRoute first = world_.route(a, device(from), device(by));
    extend(first, route);
    route = std::move(first);
  }
  extend(route, world_.cross(a, nic(by), b, nic(to), world_.by_tcp()));
  extend(route, from_nic(to));
  route.latency += costs["step.start"] + costs["step.network"];
  return route;
}

}  // namespace waywiser::sim
