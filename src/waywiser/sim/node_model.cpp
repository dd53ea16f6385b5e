#include "waywiser/sim/node_model.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include "waywiser/base/error.hpp"
#include "waywiser/topology/relation.hpp"
#include "waywiser/topology/route.hpp"
#include "waywiser/topology/system_files.hpp"

namespace waywiser::sim {
namespace {

bool shared_by_both_directions(const Link& link) { return link.kind == "memory"; }

std::string one_way(const std::string& from, const std::string& to) { return from + ">" + to; }

BytesPerSecond attribute(const Device& device, const std::string& name) {
  const auto found = device.attributes.find(name);
  double value = 0;
  if (found != device.attributes.end())
    std::from_chars(found->second.data(), found->second.data() + found->second.size(), value);
  return value;
}

// A share of the nominal rate where the parts say one, else what the link says good software reaches.
BytesPerSecond capacity_of(const Link& link, const Costs& costs) {
  const std::string share = link.kind + ".share";
  if (link.kind == "memory" && costs["memory.rate"] > 0) return costs["memory.rate"];
  if (costs.has(share) && costs[share] > 0 && link.nominal) return *link.nominal * costs[share];
  if (link.achievable || link.nominal) return link.achievable ? *link.achievable : *link.nominal;
  return link.kind == "memory" ? costs["memory.assumed"] : 0;
}

}  // namespace

NodeModel::NodeModel(Topology topology, Costs costs, Curves curves)
    : topology_(std::move(topology)), costs_(std::move(costs)), curves_(std::move(curves)), graph_(topology_) {
  for (const Link& link : topology_.links) add_link(link);
  for (const Device& device : topology_.devices) {
    if (device.kind == "gpu") add(device.id, attribute(device, "memory_bandwidth") * costs_["gpu.memory_share"]);
    if (device.kind != "root") continue;
    add(device.id + ".read", costs_["cpu.p2p_read"]);
    add(device.id + ".write", costs_["cpu.p2p_write"]);
    add(device.id + ".socket", costs_["cpu.p2p_socket"]);
  }
}

void NodeModel::add(const std::string& name, BytesPerSecond capacity) {
  if (capacity <= 0) return;
  const auto [known, fresh] = ids_.emplace(name, static_cast<LinkId>(capacities_.size()));
  if (!fresh) {  // links side by side
    capacities_[known->second] += capacity;
    return;
  }
  capacities_.push_back(capacity);
  names_.push_back(name);
}

void NodeModel::add_link(const Link& link) {
  const BytesPerSecond capacity = capacity_of(link, costs_);
  if (shared_by_both_directions(link)) return add(std::min(link.a, link.b) + "-" + std::max(link.a, link.b), capacity);
  add(one_way(link.a, link.b), capacity);
  add(one_way(link.b, link.a), capacity);
}

void NodeModel::use(TimedRoute& road, const std::string& name) const {
  if (const auto found = ids_.find(name); found != ids_.end()) road.uses.push_back({found->second, 1});
}

const TimedRoute& NodeModel::road(const std::string& from, const std::string& to, Links links) const {
  const auto key = std::tuple(from, to, links);
  const auto known = roads_.find(key);
  return known != roads_.end() ? known->second : roads_.emplace(key, find(from, to, links)).first->second;
}

TimedRoute NodeModel::find(const std::string& from, const std::string& to, Links links) const {
  TimedRoute road;
  if (from == to) return within(from);
  const Route way = route(graph_, from, to, links);
  for (const Hop& hop : way.hops) {
    if (shared_by_both_directions(hop.link))
      use(road, std::min(hop.from, hop.to) + "-" + std::max(hop.from, hop.to));
    else
      use(road, one_way(hop.from, hop.to));
    const std::string latency = hop.link.kind + ".hop";
    if (costs_.has(latency)) road.latency += costs_[latency];
  }
  add_peer_limits(road, way.hops);
  return road;
}

void NodeModel::add_peer_limits(TimedRoute& road, const std::vector<Hop>& hops) const {
  const Device& first = topology_.at(hops.front().from);
  const Device& last = topology_.at(hops.back().to);
  if (first.kind == "host" || last.kind == "host") return;
  const bool sockets = std::ranges::any_of(hops, [](const Hop& hop) { return hop.link.kind == "socket"; });
  bool passed = false;
  for (const Hop& hop : hops) {
    if (topology_.at(hop.to).kind != "root" || passed) continue;
    passed = true;
    use(road, hop.to + (sockets ? ".socket" : last.kind == "nic" ? ".read" : ".write"));
  }
}

TimedRoute NodeModel::within(const std::string& memory) const {
  TimedRoute road;
  use(road, memory);
  for (const Link& link : topology_.links)
    if (link.kind == "memory" && (link.a == memory || link.b == memory))
      use(road, std::min(link.a, link.b) + "-" + std::max(link.a, link.b));
  for (Use& used : road.uses) used.weight = 2;
  return road;
}

BytesPerSecond NodeModel::port_rate(const std::string& nic) const {
  for (const Link& link : topology_.links)
    if (link.kind == "network" && (link.a == nic || link.b == nic)) return capacity_of(link, costs_);
  return 0;
}

BytesPerSecond NodeModel::nvlink_rate(const std::string& gpu) const {
  BytesPerSecond rate = 0;
  for (const Link& link : topology_.links)
    if (link.kind == "nvlink" && (link.a == gpu || link.b == gpu)) rate += capacity_of(link, costs_);
  return rate;
}

// The rate of the slowest GPU. If ranks are in host memory, one thread adds: two reads and one write; a copy is one of
// each.
BytesPerSecond NodeModel::reduce_rate() const {
  if (costs_["reduce.rate"] > 0) return costs_["reduce.rate"];
  const std::vector<std::string> gpus = topology_.ids("gpu");
  if (gpus.empty()) return costs_["host.copy_rate"] * 2 / 3;
  BytesPerSecond slowest = no_cap;
  for (const std::string& gpu : gpus) {
    const auto memory = ids_.find(gpu);
    if (memory != ids_.end()) slowest = std::min(slowest, capacities_[memory->second] / 3);
  }
  return slowest == no_cap ? 0 : slowest;
}

NodeModel::Caches NodeModel::caches(const std::string& host) const {
  Caches found{costs_["host.near_bytes"], costs_["host.cache_bytes"]};
  for (const Link& link : topology_.links) {
    if (link.kind != "memory" || (link.a != host && link.b != host)) continue;
    const Device& cpu = topology_.at(link.a == host ? link.b : link.a);
    if (const double near = attribute(cpu, "l1_data_bytes"); near > 0) found.near = near;
    if (const double second = attribute(cpu, "l2_bytes"); second > 0) found.second = second;
  }
  return found;
}

int NodeModel::cores() const {
  std::size_t cores = 0;
  for (const Device& device : topology_.devices) {
    if (device.kind != "host") continue;
    const auto numbers = device.attributes.find("core_numbers");
    cores += parse_cpulist(numbers == device.attributes.end() ? device.cores : numbers->second).size();
  }
  return cores == 0 ? std::numeric_limits<int>::max() : static_cast<int>(cores);
}

std::vector<std::string> NodeModel::nics(const std::string& device, bool rdma) const {
  std::vector<std::tuple<int, double, std::string>> found;
  BytesPerSecond best = 0;
  for (const std::string& nic : topology_.ids("nic")) best = std::max(best, port_rate(nic));
  for (const std::string& nic : topology_.ids("nic")) {
    const BytesPerSecond rate = port_rate(nic);
    if (rate <= 0 || (rdma && rate < best / 2)) continue;
    found.emplace_back(distance(relation(graph_, device, nic)), -rate, nic);
  }
  std::ranges::stable_sort(found, {},
                           [](const auto& entry) { return std::pair(std::get<0>(entry), std::get<1>(entry)); });
  std::vector<std::string> names;
  for (const auto& entry : found) names.push_back(std::get<2>(entry));
  return names;
}

std::string NodeModel::host_beside(const std::string& device) const {
  const Device& found = topology_.at(device);
  if (found.kind == "host") return device;
  const std::string node = "host" + std::to_string(std::max(0, found.numa));
  return topology_.find(node) == nullptr ? "host0" : node;
}

}  // namespace waywiser::sim
