#include "waywiser/sim/world.hpp"

#include <algorithm>

#include "waywiser/base/error.hpp"

namespace waywiser::sim {
void extend(TimedRoute& route, const TimedRoute& more) {
  route.uses.insert(route.uses.end(), more.uses.begin(), more.uses.end());
  route.latency += more.latency;
}

namespace {

std::vector<std::string> rails_of(const NodeModel& node, bool rdma_only) {
  const std::vector<std::string> gpus = node.topology().ids("gpu");
  const std::string beside = gpus.empty() ? node.topology().ids("host").at(0) : gpus.front();
  std::vector<std::string> rails = node.nics(beside, rdma_only);
  std::ranges::sort(rails);
  if (rails.empty())
    throw Error(ErrorKind::invalid_input, "machine " + node.topology().name + " has no NIC with a known rate");
  return rails;
}

}  // namespace

World::World(const NodeModel& node, ClusterSpec spec) : node_(node), spec_(std::move(spec)) {
  types_ = spec_.others;
  types_.insert(types_.begin(), &node);
  rails_.resize(types_.size());
  add_nodes();
  gpus_ = node.topology().ids("gpu");
  add_domain();
  if (nodes() > 1) add_network();
}

void World::add_nodes() {
  if (!spec_.types.empty() && spec_.types.size() != static_cast<std::size_t>(nodes()))
    throw Error(ErrorKind::invalid_input, "a cluster needs the type of each of its nodes");
  for (const int type : spec_.types)
    if (type < 0 || static_cast<std::size_t>(type) >= types_.size())
      throw Error(ErrorKind::invalid_input, "a node is of a type that the cluster does not have");
  for (int i = 0; i < nodes(); ++i) {
    first_hops_.push_back(static_cast<LinkId>(engine_.network().links()));
    for (const BytesPerSecond capacity : this->node(i).capacities()) engine_.network().add_link(capacity);
  }
}

void World::add_network() {
  for (std::size_t i = 0; i < types_.size(); ++i) rails_[i] = rails_of(*types_[i], spec_.rdma_only);
  const std::size_t most = std::ranges::max(rails_, {}, &std::vector<std::string>::size).size();
  spec_.network.rails = static_cast<int>(most);
  if (spec_.network.port_rate <= 0) {
    for (int i = 0; i < nodes(); ++i) {
      for (const std::string& nic : rails(i)) spec_.network.rates_of_ports.push_back(this->node(i).port_rate(nic));
      spec_.network.rates_of_ports.resize(static_cast<std::size_t>(i + 1) * most, 0);  // where a type has fewer rails
    }
    spec_.network.port_rate = std::ranges::max(spec_.network.rates_of_ports);
  }
  network_ = make_network(spec_.network, engine_.network());
}

void World::add_domain() {
  if (spec_.nvlink_domain == 0) return;
  const auto gpus = static_cast<int>(gpus_.size());
  const BytesPerSecond rate = gpus == 0 ? 0 : node_.nvlink_rate(gpus_[0]);
  if (gpus == 0 || rate <= 0 || spec_.nvlink_domain % gpus != 0)
    throw Error(ErrorKind::invalid_input, "an NVLink domain must hold whole nodes: a multiple of the " +
                                              std::to_string(gpus) + " GPUs of a node, which need NVLinks");
  domain_ = static_cast<LinkId>(engine_.network().links());
  for (int i = 0; i < 2 * nodes() * gpus; ++i) engine_.network().add_link(rate);
}

bool World::share_domain(int a, int b) const {
  if (spec_.nvlink_domain == 0) return false;
  const int nodes_of_domain = spec_.nvlink_domain / static_cast<int>(gpus_.size());
  return a / nodes_of_domain == b / nodes_of_domain;
}

TimedRoute World::over_domain(int from, const std::string& from_gpu, int to, const std::string& to_gpu) const {
  const auto number = [&](int node, const std::string& gpu) {
    const auto local = std::ranges::find(gpus_, gpu) - gpus_.begin();
    return static_cast<LinkId>(node) * static_cast<LinkId>(gpus_.size()) + static_cast<LinkId>(local);
  };
  TimedRoute route;
  route.uses.push_back({domain_ + 2 * number(from, from_gpu), 1});
  route.uses.push_back({domain_ + 2 * number(to, to_gpu) + 1, 1});
  route.latency = 2 * node_.costs()["nvlink.hop"];
  return route;
}

TimedRoute World::shifted(const TimedRoute& route, int node) const {
  TimedRoute moved = route;
  const LinkId offset = first_hops_.at(static_cast<std::size_t>(node));
  for (Use& use : moved.uses) use.link += offset;
  return moved;
}

TimedRoute World::route(int node, const std::string& from, const std::string& to, Links links) const {
  return shifted(this->node(node).route(from, to, links), node);
}

TimedRoute World::within(int node, const std::string& memory) const {
  return shifted(this->node(node).within(memory), node);
}

int World::rail(int number, const std::string& nic) const {
  const std::vector<std::string>& all = rails(number);
  const auto found = std::ranges::find(all, nic);
  if (found == all.end()) throw Error(ErrorKind::invalid_input, nic + " does not lead into the network");
  return static_cast<int>(found - all.begin());
}

TimedRoute World::cross(int from, const std::string& from_nic, int to, const std::string& to_nic) const {
  if (network_ == nullptr) throw Error(ErrorKind::invalid_input, "a single node has no network");
  const Crossing way = network_->cross({from, rail(from, from_nic)}, {to, rail(to, to_nic)});
  TimedRoute route;
  for (const LinkId link : way.links) route.uses.push_back({link, 1});
  const double nics = node(from).costs()["nic.latency"] + node(to).costs()["nic.latency"];
  route.latency = nics / 2 + way.switches * node_.costs()["switch.latency"];
  return route;
}

}  // namespace waywiser::sim
