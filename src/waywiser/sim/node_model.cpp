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

std::string both_ways(const Link& link) { return std::min(link.a, link.b) + "-" + std::max(link.a, link.b); }

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
  if (link.kind == "memory" && costs.peek("memory.rate") > 0) return costs.peek("memory.rate");
  if (costs.has(share) && costs.peek(share) > 0 && link.nominal) return *link.nominal * costs.peek(share);
  if (link.achievable || link.nominal) return link.achievable ? *link.achievable : *link.nominal;
  return link.kind == "memory" ? costs.peek("memory.assumed") : 0;
}

}  // namespace

NodeModel::NodeModel(Topology topology, Costs costs, Curves curves)
    : topology_(std::move(topology)), costs_(std::move(costs)), curves_(std::move(curves)), graph_(topology_) {
  for (const Link& link : topology_.links) add_link(link);
  for (const Device& device : topology_.devices) {
    if (device.kind == "gpu") add(device.id, attribute(device, "memory_bandwidth") * costs_.peek("gpu.memory_share"));
    if (device.kind != "root") continue;
    add(device.id + ".read", costs_.peek("cpu.p2p_read"));
    add(device.id + ".write", costs_.peek("cpu.p2p_write"));
    add(device.id + ".socket", costs_.peek("cpu.p2p_socket"));
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
  if (shared_by_both_directions(link)) return add(both_ways(link), capacity);
  add(one_way(link.a, link.b), capacity);
  add(one_way(link.b, link.a), capacity);
}

// False: nothing is known to limit it.
bool NodeModel::use(TimedRoute& route, const std::string& name) const {
  const auto found = ids_.find(name);
  if (found == ids_.end()) return false;
  route.uses.push_back({found->second, 1});
  return true;
}

void NodeModel::use_link(TimedRoute& route, const Link& link, const std::string& name) const {
  const bool known = use(route, name);
  const bool rated = link.nominal || link.achievable;
  if (link.kind == "memory" && !rated && costs_["memory.rate"] <= 0) {
    static_cast<void>(costs_["memory.assumed"]);
  } else if (known && link.nominal && costs_.has(link.kind + ".share")) {
    static_cast<void>(costs_[link.kind + ".share"]);
  } else if (!known && link.kind != "internal") {
    assume(link.kind + " link " + link.a + "-" + link.b, "rate", "no limit");
  }
}

void NodeModel::use_gpu(TimedRoute& route, const std::string& gpu) const {
  static_cast<void>(costs_["gpu.memory_share"]);
  if (!use(route, gpu)) assume(topology_.at(gpu).name, "memory bandwidth", "no limit");
}

void NodeModel::assume(const std::string& part, const std::string& what, const std::string& assumed) const {
  assumed_.insert({part.empty() ? "a part without a name" : part, what, what, assumed});
}

Assumptions NodeModel::assumed() const {
  Assumptions all = costs_.assumed();
  all.insert(assumed_.begin(), assumed_.end());
  return all;
}

const TimedRoute& NodeModel::route(const std::string& from, const std::string& to, Links links) const {
  const auto key = std::tuple(from, to, links);
  const auto known = routes_.find(key);
  return known != routes_.end() ? known->second : routes_.emplace(key, find(from, to, links)).first->second;
}

TimedRoute NodeModel::find(const std::string& from, const std::string& to, Links links) const {
  TimedRoute route;
  if (from == to) return within(from);
  const Route way = waywiser::route(graph_, from, to, links);
  for (const Hop& hop : way.hops) {
    use_link(route, hop.link, shared_by_both_directions(hop.link) ? both_ways(hop.link) : one_way(hop.from, hop.to));
    const std::string latency = hop.link.kind + ".hop";
    if (costs_.has(latency)) route.latency += costs_[latency];
  }
  if (const std::string limit = peer_limit(way.hops); !limit.empty()) route.limited = use(route, limit);
  return route;
}

// "root0.read", the limit of the first root complex on the way; empty: there is none.
std::string NodeModel::peer_limit(const std::vector<Hop>& hops) const {
  const Device& first = topology_.at(hops.front().from);
  const Device& last = topology_.at(hops.back().to);
  if (first.kind == "host" || last.kind == "host") return "";
  const auto root = std::ranges::find_if(hops, [&](const Hop& hop) { return topology_.at(hop.to).kind == "root"; });
  if (root == hops.end()) return "";
  const bool sockets = std::ranges::any_of(hops, [](const Hop& hop) { return hop.link.kind == "socket"; });
  const std::string what = sockets ? "socket" : last.kind == "nic" ? "read" : "write";
  return costs_["cpu.p2p_" + what] > 0 ? root->to + "." + what : "";
}

TimedRoute NodeModel::within(const std::string& memory) const {
  TimedRoute route;
  if (topology_.at(memory).kind == "gpu") use_gpu(route, memory);
  for (const Link& link : topology_.links)
    if (link.kind == "memory" && (link.a == memory || link.b == memory)) use_link(route, link, both_ways(link));
  for (Use& used : route.uses) used.weight = 2;
  return route;
}

int NodeModel::distance(const std::string& from, const std::string& to) const {
  const auto key = std::pair(from, to);
  const auto known = distances_.find(key);
  if (known != distances_.end()) return known->second;
  return distances_.emplace(key, waywiser::distance(relation(graph_, from, to))).first->second;
}

bool NodeModel::peer_access(const std::string& from, const std::string& to) const {
  const auto key = std::pair(from, to);
  const auto known = peer_access_.find(key);
  if (known != peer_access_.end()) return known->second;
  return peer_access_.emplace(key, !why_no_peer_access(topology_, from, to)).first->second;
}

bool NodeModel::direct_rdma(const std::string& device) const {
  const std::map<std::string, std::string>& attributes = topology_.at(device).attributes;
  const auto found = attributes.find("gpudirect_rdma");
  return found == attributes.end() || found->second != "no";
}

bool NodeModel::rdma(const std::string& nic) const {
  const auto known = rdma_.find(nic);
  return known != rdma_.end() ? known->second : rdma_.emplace(nic, has_rdma(topology_, nic)).first->second;
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
    TimedRoute memory;
    use_gpu(memory, gpu);
    for (const Use& used : memory.uses) slowest = std::min(slowest, capacities_[used.link] / 3);
  }
  return slowest == no_cap ? 0 : slowest;
}

NodeModel::Caches NodeModel::caches(const std::string& host) const {
  Caches found;
  for (const Link& link : topology_.links) {
    if (link.kind != "memory" || (link.a != host && link.b != host)) continue;
    const Device& cpu = topology_.at(link.a == host ? link.b : link.a);
    if (const double near = attribute(cpu, "l1_data_bytes"); near > 0) found.near = near;
    if (const double second = attribute(cpu, "l2_bytes"); second > 0) found.second = second;
  }
  if (found.near <= 0) found.near = costs_["host.near_bytes"];
  if (found.second <= 0) found.second = costs_["host.cache_bytes"];
  return found;
}

int NodeModel::cores() const {
  std::size_t cores = 0;
  for (const Device& device : topology_.devices) {
    if (device.kind != "host") continue;
    const auto numbers = device.attributes.find("core_numbers");
    cores += parse_cpulist(numbers == device.attributes.end() ? device.cores : numbers->second).size();
  }
  if (cores == 0) assume("the CPUs", "number of cores", "no limit");
  return cores == 0 ? std::numeric_limits<int>::max() : static_cast<int>(cores);
}

std::vector<std::string> NodeModel::nics(const std::string& device, bool rdma) const {
  const auto key = std::pair(device, rdma);
  const auto known = nics_.find(key);
  return known != nics_.end() ? known->second : nics_.emplace(key, sorted_nics(device, rdma)).first->second;
}

std::vector<std::string> NodeModel::sorted_nics(const std::string& device, bool rdma) const {
  std::vector<std::tuple<int, double, std::string>> found;
  std::vector<std::string> nics = topology_.ids("nic");
  std::erase_if(nics, [&](const std::string& nic) { return port_rate(nic) <= 0; });
  const auto with_rdma = [&](const std::string& nic) { return this->rdma(nic); };
  if (rdma && std::ranges::any_of(nics, with_rdma))
    std::erase_if(nics, [&](const std::string& nic) { return !with_rdma(nic); });
  BytesPerSecond best = 0;
  for (const std::string& nic : nics) best = std::max(best, port_rate(nic));
  for (const std::string& nic : nics) {
    const BytesPerSecond rate = port_rate(nic);
    if (rdma && rate < best / 2) continue;
    found.emplace_back(distance(device, nic), -rate, nic);
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
  if (found.numa < 0 && topology_.ids("host").size() > 1) assume(device, "NUMA node", "host0");
  const std::string node = "host" + std::to_string(std::max(0, found.numa));
  return topology_.find(node) == nullptr ? "host0" : node;
}

}  // namespace waywiser::sim
