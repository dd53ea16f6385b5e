#include "waywiser/sim/world.hpp"

#include <algorithm>
#include <set>

#include "waywiser/base/error.hpp"

namespace waywiser::sim {
void extend(TimedRoute& route, const TimedRoute& more) {
  route.uses.insert(route.uses.end(), more.uses.begin(), more.uses.end());
  route.latency += more.latency;
  route.cap = std::min(route.cap, more.cap);
}

void add(std::vector<Use>& uses, const TimedRoute& route, double weight) {
  for (const Use& use : route.uses) uses.push_back({use.link, use.weight * weight});
}

void merge(std::vector<Use>& uses) {
  std::ranges::sort(uses, {}, &Use::link);
  std::size_t kept = 0;
  for (const Use& use : uses) {
    if (kept > 0 && uses[kept - 1].link == use.link)
      uses[kept - 1].weight += use.weight;
    else
      uses[kept++] = use;
  }
  uses.resize(kept);
}

namespace {

std::vector<std::string> nics_of(const NodeModel& node, bool rdma_only) {
  const std::vector<std::string> gpus = node.topology().ids("gpu");
  const std::string beside = gpus.empty() ? node.topology().ids("host").at(0) : gpus.front();
  std::vector<std::string> nics = node.nics(beside, rdma_only);
  std::ranges::sort(nics);
  if (nics.empty())
    throw Error(ErrorKind::invalid_input, "machine " + node.topology().name + " has no NIC with a known rate");
  return nics;
}

// Which of its node's ports a NIC is; the number of ports if it is none of them.
int index_in(const std::vector<std::string>& nics, const std::string& nic) {
  return static_cast<int>(std::ranges::find(nics, nic) - nics.begin());
}

std::size_t most_of(const std::vector<std::vector<std::string>>& nics) {
  return std::ranges::max(nics, {}, &std::vector<std::string>::size).size();
}

}  // namespace

World::World(const NodeModel& node, ClusterSpec spec) : node_(node), spec_(std::move(spec)) {
  types_ = spec_.others;
  types_.insert(types_.begin(), &node);
  rails_.resize(types_.size());
  side_nics_.resize(types_.size());
  check();
  add_nodes();
  gpus_ = node.topology().ids("gpu");
  add_domain();
  if (nodes() > 1) add_network();
}

void World::check() const {
  const std::set<int> different(spec_.places.begin(), spec_.places.end());
  if (different.size() != spec_.places.size() ||
      (!different.empty() && (*different.begin() < 0 || *different.rbegin() >= spec_.network.nodes)))
    throw Error(ErrorKind::invalid_input,
                "the places of nodes are different numbers from 0 to " + std::to_string(spec_.network.nodes - 1));
  if (!spec_.types.empty() && spec_.types.size() != static_cast<std::size_t>(spec_.network.nodes))
    throw Error(ErrorKind::invalid_input, "a cluster needs the type of each of its nodes");
  for (const int type : spec_.types)
    if (type < 0 || static_cast<std::size_t>(type) >= types_.size())
      throw Error(ErrorKind::invalid_input, "a node is of a type that the cluster does not have");
}

void World::add_nodes() {
  for (int i = 0; i < nodes(); ++i) {
    first_hops_.push_back(static_cast<LinkId>(engine_.network().links()));
    for (const BytesPerSecond capacity : this->node(i).capacities()) engine_.network().add_link(capacity);
  }
}

void World::add_network() {
  for (std::size_t i = 0; i < types_.size(); ++i) {
    rails_[i] = nics_of(*types_[i], spec_.rdma_only);
    for (const std::string& nic : nics_of(*types_[i], false))
      if (!std::ranges::count(rails_[i], nic)) side_nics_[i].push_back(nic);
    by_tcp_ = by_tcp_ || std::ranges::any_of(rails_[i], [&](const auto& nic) { return !types_[i]->rdma(nic); });
  }
  spec_.network.rails = static_cast<int>(most_of(rails_));
  if (spec_.network.port_rate <= 0) {
    spec_.network.rates_of_ports = port_rates(rails_);
    spec_.network.port_rate = std::ranges::max(spec_.network.rates_of_ports);
  }
  network_ = make_network(spec_.network, engine_.network());
  if (most_of(side_nics_) == 0) return;
  NetworkSpec beside;
  beside.nodes = spec_.network.nodes;
  beside.rails = static_cast<int>(most_of(side_nics_));
  beside.rates_of_ports = port_rates(side_nics_);
  beside.port_rate = std::ranges::max(beside.rates_of_ports);
  side_network_ = make_network(beside, engine_.network());
}

// Of the ports at place 0, then at place 1, ...; 0 where a type has fewer of them.
std::vector<BytesPerSecond> World::port_rates(const std::vector<std::vector<std::string>>& nics) const {
  std::vector<BytesPerSecond> rates;
  for (int i = 0; i < spec_.network.nodes; ++i) {
    const auto its = static_cast<std::size_t>(type_at(i));
    for (const std::string& nic : nics[its]) rates.push_back(types_[its]->port_rate(nic));
    rates.resize(static_cast<std::size_t>(i + 1) * most_of(nics), 0);
  }
  return rates;
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
  return place(a) / nodes_of_domain == place(b) / nodes_of_domain;
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

bool World::by_rails(int from, const std::string& from_nic, int to, const std::string& to_nic) const {
  const bool out = std::ranges::count(rails(from), from_nic) != 0, in = std::ranges::count(rails(to), to_nic) != 0;
  const bool known = (out || std::ranges::count(side_nics(from), from_nic) != 0) &&
                     (in || std::ranges::count(side_nics(to), to_nic) != 0);
  if (!known) throw Error(ErrorKind::unavailable, from_nic + " or " + to_nic + " has no port of a known rate");
  if (out != in) throw Error(ErrorKind::unavailable, from_nic + " and " + to_nic + " lead into different networks");
  return out;
}

TimedRoute World::cross(int from, const std::string& from_nic, int to, const std::string& to_nic, bool tcp) const {
  if (network_ == nullptr) throw Error(ErrorKind::invalid_input, "a single node has no network");
  const bool by = by_rails(from, from_nic, to, to_nic);
  const Port out{place(from), index_in(by ? rails(from) : side_nics(from), from_nic)};
  const Port in{place(to), index_in(by ? rails(to) : side_nics(to), to_nic)};
  const Crossing way = (by ? *network_ : *side_network_).cross(out, in);
  TimedRoute route;
  for (const LinkId link : way.links) route.uses.push_back({link, 1});
  if (!way.spread.empty()) {
    route.uses.insert(route.uses.end(), way.spread.begin(), way.spread.end());
    merge(route.uses);
  }
  const double nics = node(from).costs()["nic.latency"] + node(to).costs()["nic.latency"];
  route.latency = nics / 2 + way.switches * node_.costs()["switch.latency"];
  if (!tcp && node(from).rdma(from_nic) && node(to).rdma(to_nic)) return route;
  route.latency += node(from).costs()["tcp.latency"];
  route.cap = node(from).costs()["tcp.rate"];
  return route;
}

}  // namespace waywiser::sim
