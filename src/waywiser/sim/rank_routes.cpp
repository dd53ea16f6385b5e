#include "waywiser/sim/rank_routes.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/topology/relation.hpp"
#include "waywiser/topology/route.hpp"

namespace waywiser::sim {
namespace {

std::vector<std::string> closest_to(const World& world, const std::string& device) {
  std::vector<std::string> closest;
  int least = -1;
  for (const std::string& nic : world.rails()) {
    const int far = world.node().distance(device, nic);
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
std::map<std::string, std::string> closest_nics(const World& world, const std::vector<std::string>& devices, int turn) {
  std::map<std::string, std::string> chosen;
  std::map<std::vector<std::string>, std::size_t> turns;
  for (int i = 0; i <= turn; ++i)
    for (const std::string& device : devices) {
      const std::vector<std::string> closest = closest_to(world, device);
      chosen[device] = closest.empty() ? "" : closest[turns[closest]++ % closest.size()];
    }
  return chosen;
}

}  // namespace

RankRoutes::RankRoutes(World& world, DirectRdma direct, const std::vector<std::string>& order, bool pxn,
                       PeerCopies peers, int turn)
    : world_(world), direct_(direct), pxn_(pxn), peers_(peers) {
  devices_ = world.node().topology().ids("gpu");
  const auto twice_or_unknown = [&](const std::string& gpu) {
    return std::ranges::count(order, gpu) != 1 || std::ranges::count(devices_, gpu) != 1;
  };
  if (std::ranges::any_of(order, twice_or_unknown))
    throw Error(ErrorKind::invalid_input, "the order must name GPUs of the node, which has " +
                                              std::to_string(devices_.size()) + ", each once at most");
  if (devices_.empty()) devices_ = {world.node().topology().ids("host").at(0)};
  const auto nics = closest_nics(world, devices_, turn);  // the order of the ranks changes nothing
  if (!order.empty()) devices_ = order;
  for (const std::string& device : devices_) nics_.push_back(nics.at(device));
}

BytesPerSecond RankRoutes::slowest(const TimedRoute& route) const {
  BytesPerSecond rate = no_cap;
  for (const Use& use : route.uses) rate = std::min(rate, world_.capacity(use.link) / use.weight);
  return rate;
}

TimedRoute RankRoutes::staged(int node, const std::string& from, const std::string& to) const {
  const bool into = from.starts_with("nic");
  const std::string host = world_.node().host_beside(into ? to : from);
  TimedRoute route = world_.route(node, from, host, Links::no_gpu_fabric);
  extend(route, world_.route(node, host, to, Links::no_gpu_fabric));
  route.latency += world_.node().costs()["ucx.copy"];
  return route;
}

TimedRoute RankRoutes::chosen(int rank, bool reads, const TimedRoute& direct, const TimedRoute& staged) const {
  if (!world_.node().direct_rdma(device(rank))) return staged;
  if (direct_ == DirectRdma::best) return slowest(direct) >= slowest(staged) ? direct : staged;
  const auto is_near = [&] { return world_.node().distance(device(rank), nic(rank)) <= distance("PXB"); };
  const bool on = direct_ == DirectRdma::on || (direct_ == DirectRdma::write && !reads) ||
                  (direct_ == DirectRdma::near && is_near());
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
  const std::string host = world_.node().host_beside(from);
  TimedRoute route = world_.route(node, from, host, Links::no_gpu_fabric);
  extend(route, world_.route(node, host, to, Links::no_gpu_fabric));
  route.latency += 2 * world_.node().costs()["copy.hold"];
  return route;
}

TimedRoute RankRoutes::between_gpus(int node, const std::string& from, const std::string& to) const {
  if (!world_.node().peer_access(from, to)) return through_host(node, from, to);
  TimedRoute direct = world_.route(node, from, to);
  if (!direct.limited) return direct;
  TimedRoute staged = through_host(node, from, to);
  return peers_ == PeerCopies::staged || slowest(staged) > slowest(direct) ? staged : direct;
}

TimedRoute RankRoutes::within(int node, const std::string& from, const std::string& to) const {
  TimedRoute route = from == to                ? world_.within(node, from)
                     : from.starts_with("gpu") ? between_gpus(node, from, to)
                                               : world_.route(node, from, to);
  route.latency += world_.node().costs()["step.start"];
  return route;
}

bool RankRoutes::could_be_staged() const {
  const NodeModel& node = world_.node();
  return std::ranges::any_of(devices_, [&](const std::string& from) {
    return std::ranges::any_of(devices_, [&](const std::string& to) {
      return from != to && node.peer_access(from, to) && node.route(from, to).limited;
    });
  });
}

int RankRoutes::sender(int from, int to) const {
  if (!pxn_ || nic(from) == nic(to)) return from;
  const int beside = node_of(from) * ranks_of_node() + to % ranks_of_node();
  return world_.node().distance(device(from), device(beside)) == 0 ? beside : from;
}

TimedRoute RankRoutes::route(int from, int to) const {
  const int a = node_of(from), b = node_of(to);
  if (a == b && (!world_.share_domain(a, b) || device(from) == device(to))) return within(a, device(from), device(to));
  const Costs& costs = world_.node().costs();
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
  extend(route, world_.cross(a, nic(by), b, nic(to)));
  extend(route, from_nic(to));
  route.latency += costs["step.start"] + costs["step.network"];
  return route;
}

}  // namespace waywiser::sim
