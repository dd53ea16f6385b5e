#include "waywiser/sim/world.hpp"

#include <algorithm>

#include "waywiser/base/error.hpp"

namespace waywiser::sim {
void extend(Road& road, const Road& more) {
  road.uses.insert(road.uses.end(), more.uses.begin(), more.uses.end());
  road.latency += more.latency;
}

World::World(const NodeModel& node, ClusterSpec spec) : node_(node), spec_(std::move(spec)) {
  for (int i = 0; i < nodes(); ++i)
    for (const BytesPerSecond capacity : node.capacities()) engine_.network().add_link(capacity);
  gpus_ = node.topology().ids("gpu");
  add_domain();
  if (nodes() == 1) return;
  const std::vector<std::string> hosts = node.topology().ids("host");
  rails_ = node.nics(gpus_.empty() ? hosts.at(0) : gpus_[0], spec_.rdma_only);
  std::ranges::sort(rails_);
  if (rails_.empty())
    throw Error(ErrorKind::invalid_input, "machine " + node.topology().name + " has no NIC with a known rate");
  spec_.network.rails = static_cast<int>(rails_.size());
  if (spec_.network.port_rate <= 0) {
    for (const std::string& nic : rails_) spec_.network.rates_of_rails.push_back(node.port_rate(nic));
    spec_.network.port_rate = std::ranges::max(spec_.network.rates_of_rails);
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

Road World::over_domain(int from, const std::string& from_gpu, int to, const std::string& to_gpu) const {
  const auto number = [&](int node, const std::string& gpu) {
    const auto local = std::ranges::find(gpus_, gpu) - gpus_.begin();
    return static_cast<LinkId>(node) * static_cast<LinkId>(gpus_.size()) + static_cast<LinkId>(local);
  };
  Road road;
  road.uses.push_back({domain_ + 2 * number(from, from_gpu), 1});
  road.uses.push_back({domain_ + 2 * number(to, to_gpu) + 1, 1});
  road.latency = 2 * node_.costs()["nvlink.hop"];
  return road;
}

Road World::shifted(const Road& road, int node) const {
  Road moved = road;
  const auto offset = static_cast<LinkId>(node) * static_cast<LinkId>(node_.capacities().size());
  for (Use& use : moved.uses) use.link += offset;
  return moved;
}

Road World::road(int node, const std::string& from, const std::string& to, Links links) const {
  return shifted(node_.road(from, to, links), node);
}

Road World::within(int node, const std::string& memory) const { return shifted(node_.within(memory), node); }

int World::rail(const std::string& nic) const {
  const auto found = std::ranges::find(rails_, nic);
  if (found == rails_.end()) throw Error(ErrorKind::invalid_input, nic + " does not lead into the network");
  return static_cast<int>(found - rails_.begin());
}

Road World::cross(int from, const std::string& from_nic, int to, const std::string& to_nic) const {
  if (network_ == nullptr) throw Error(ErrorKind::invalid_input, "a single node has no network");
  const Crossing way = network_->cross({from, rail(from_nic)}, {to, rail(to_nic)});
  Road road;
  for (const LinkId link : way.links) road.uses.push_back({link, 1});
  road.latency = node_.costs()["nic.latency"] + way.switches * node_.costs()["switch.latency"];
  return road;
}

}  // namespace waywiser::sim
