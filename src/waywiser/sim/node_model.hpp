#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "waywiser/sim/costs.hpp"
#include "waywiser/sim/curves.hpp"
#include "waywiser/sim/flow_network.hpp"
#include "waywiser/topology/graph.hpp"

namespace waywiser::sim {

// The hops between two devices of a node, and the latency of the first byte.
struct TimedRoute {
  std::vector<Use> uses;
  Seconds latency = 0;
  BytesPerSecond cap = no_cap;  // of one flow: what a thread of TCP carries
  bool limited = false;         // by a root complex between two devices
};

// The hops of one kind of node as links of a flow network, numbered from 0.
// A PCIe link, NVLink or socket link is two hops, one a direction; a memory is one hop, shared by reads and writes. If
// two devices that are not memory exchange data through a root complex, that root complex is a hop too, with the
// capacity of its CPU generation (costs cpu.p2p_read, cpu.p2p_write, cpu.p2p_socket; none if they are 0 or not known).
class NodeModel {
 public:
  // Keeps copies.
  NodeModel(Topology topology, Costs costs, Curves curves = {});
  NodeModel(const NodeModel&) = delete;
  NodeModel& operator=(const NodeModel&) = delete;

  const std::vector<BytesPerSecond>& capacities() const noexcept { return capacities_; }
  const std::vector<std::string>& names() const noexcept { return names_; }
  // Throws invalid_input if the two are not connected.
  const TimedRoute& route(const std::string& from, const std::string& to, Links links = Links::all) const;
  // A copy within one memory reads and writes it.
  TimedRoute within(const std::string& memory) const;
  // The NICs of the node with a rate, closest to `device` first. `rdma`: without those that are below half of the
  // fastest one's rate, and without those that only carry TCP where others have RDMA.
  std::vector<std::string> nics(const std::string& device, bool rdma) const;
  std::string host_beside(const std::string& device) const;
  // As relation() and why_no_peer_access() have them, looked up once for each pair.
  int distance(const std::string& from, const std::string& to) const;
  bool peer_access(const std::string& from, const std::string& to) const;
  // False for a GPU of which the machine file says that NICs cannot read or write its memory.
  bool direct_rdma(const std::string& device) const;
  // As has_rdma() of the topology has it, looked up once for each NIC.
  bool rdma(const std::string& nic) const;
  // The rate of the hop between a NIC and its network.
  BytesPerSecond port_rate(const std::string& nic) const;
  // The rate of all NVLinks of a GPU together, in each direction.
  BytesPerSecond nvlink_rate(const std::string& gpu) const;
  // The rate at which a GPU adds bytes to others: two reads and one write of its memory. 0: unknown.
  BytesPerSecond reduce_rate() const;
  // The caches of a core of a host's CPU, in bytes: from the machine file, else costs host.near_bytes,
  // host.cache_bytes.
  struct Caches {
    double near = 0, second = 0;
  };
  Caches caches(const std::string& host) const;
  // Of all hosts, without hyperthreads; unlimited if the machine file does not say.
  int cores() const;

  const Topology& topology() const noexcept { return topology_; }
  const Graph& graph() const noexcept { return graph_; }
  const Costs& costs() const noexcept { return costs_; }
  // What was assumed for want of a number, in all that was asked for until now.
  Assumptions assumed() const;
  // For paths within the node.
  const Curves& curves() const noexcept { return curves_; }

 private:
  void add(const std::string& name, BytesPerSecond capacity);
  void add_link(const Link& link);
  TimedRoute find(const std::string& from, const std::string& to, Links links) const;
  std::string peer_limit(const std::vector<Hop>& hops) const;
  std::vector<std::string> sorted_nics(const std::string& device, bool rdma) const;
  bool use(TimedRoute& route, const std::string& name) const;
  void use_link(TimedRoute& route, const Link& link, const std::string& name) const;
  void use_gpu(TimedRoute& route, const std::string& gpu) const;
  void assume(const std::string& part, const std::string& what, const std::string& assumed) const;

  Topology topology_;
  Costs costs_;
  Curves curves_;
  Graph graph_;
  std::vector<BytesPerSecond> capacities_;
  std::vector<std::string> names_;
  std::map<std::string, LinkId> ids_;
  mutable std::map<std::tuple<std::string, std::string, Links>, TimedRoute> routes_;
  mutable std::map<std::pair<std::string, bool>, std::vector<std::string>> nics_;
  mutable std::map<std::string, bool> rdma_;
  mutable std::map<std::pair<std::string, std::string>, int> distances_;
  mutable std::map<std::pair<std::string, std::string>, bool> peer_access_;
  mutable Assumptions assumed_;
};

}  // namespace waywiser::sim
