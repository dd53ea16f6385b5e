#pragma once

#include <memory>
#include <string>
#include <vector>

#include "waywiser/sim/event_loop.hpp"
#include "waywiser/sim/network.hpp"
#include "waywiser/sim/node_model.hpp"

namespace waywiser::sim {

// A device of a node of the cluster.
struct Spot {
  int node = 0;
  std::string device;
  bool operator==(const Spot&) const = default;
};

struct ClusterSpec {
  // Types of node beside the first, and the type at each place of the network: 0 for the first. Empty: all are of the
  // first.
  std::vector<const NodeModel*> others{};
  std::vector<int> types{};
  // The places of the nodes in the network; empty: as numbered, at all places.
  std::vector<int> places{};
  NetworkSpec network;    // kind, shape; its places; rails and port rate come from the nodes
  bool rdma_only = true;  // slow Ethernet ports beside are no rails
  int nvlink_domain = 0;  // GPUs that one NVSwitch fabric joins across nodes; 0: only those of a node
  bool in_network_reduction = false;
};

// The hops of all nodes and of the network in one engine, those of node 0 first.
class World {
 public:
  World(const NodeModel& node, ClusterSpec spec);

  EventLoop& engine() noexcept { return engine_; }
  BytesPerSecond capacity(LinkId link) const { return engine_.network().capacity(link); }
  // The model of the first type: of all nodes, if they are of one type.
  const NodeModel& node() const noexcept { return node_; }
  const NodeModel& node(int number) const { return *types_.at(static_cast<std::size_t>(type(number))); }
  const ClusterSpec& spec() const noexcept { return spec_; }
  const std::vector<const NodeModel*>& types() const noexcept { return types_; }
  int type(int number) const { return type_at(place(number)); }
  int nodes() const noexcept {
    return spec_.places.empty() ? spec_.network.nodes : static_cast<int>(spec_.places.size());
  }
  // Of a node in the network.
  int place(int number) const { return spec_.places.empty() ? number : spec_.places[static_cast<std::size_t>(number)]; }
  // NICs that lead into the network; none of a single node.
  const std::vector<std::string>& rails(int number = 0) const {
    return rails_.at(static_cast<std::size_t>(type(number)));
  }
  const std::vector<std::string>& rails_of(std::size_t type) const { return rails_.at(type); }
  // Slow Ethernet ports beside, which one switch of their own joins.
  const std::vector<std::string>& side_nics(int number = 0) const {
    return side_nics_.at(static_cast<std::size_t>(type(number)));
  }

  // Within a node.
  TimedRoute route(int node, const std::string& from, const std::string& to, Links links = Links::all) const;
  TimedRoute within(int node, const std::string& memory) const;
  // From a NIC to a NIC of another node. By TCP, with its latency and the rate of its thread, if `tcp` says so or one
  // of the two has no RDMA.
  TimedRoute cross(int from, const std::string& from_nic, int to, const std::string& to_nic, bool tcp = false) const;
  // True if NICs that lead into the network have no RDMA: then collectives use TCP everywhere.
  bool by_tcp() const noexcept { return by_tcp_; }
  // True if the GPUs of both nodes are in one NVLink domain that spans nodes: then they have no other NVLinks, not even
  // within a node.
  bool share_domain(int a, int b) const;
  // Over that domain's NVSwitches.
  TimedRoute over_domain(int from, const std::string& from_gpu, int to, const std::string& to_gpu) const;
  const Network& network() const noexcept { return *network_; }

 private:
  void add_nodes();
  void add_domain();
  void add_network();
  std::vector<BytesPerSecond> port_rates(const std::vector<std::vector<std::string>>& nics) const;
  int type_at(int place) const { return spec_.types.empty() ? 0 : spec_.types[static_cast<std::size_t>(place)]; }
  void check() const;
  // Whether both NICs lead into the network, or both into that of the slow ports. Throws unavailable if neither.
  bool by_rails(int from, const std::string& from_nic, int to, const std::string& to_nic) const;
  TimedRoute shifted(const TimedRoute& route, int node) const;

  const NodeModel& node_;
  ClusterSpec spec_;
  EventLoop engine_;
  std::vector<const NodeModel*> types_;
  std::vector<LinkId> first_hops_;                           // of each node
  std::vector<std::vector<std::string>> rails_, side_nics_;  // of each type
  std::unique_ptr<Network> network_, side_network_;
  LinkId domain_ = 0;
  bool by_tcp_ = false;
  std::vector<std::string> gpus_;
};

// Adds the hops and the latency of `more` at the end of `route`.
void extend(TimedRoute& route, const TimedRoute& more);
// What a flow uses that goes over several routes: adds the hops of one, with this weight; each hop once, with the sum.
void add(std::vector<Use>& uses, const TimedRoute& route, double weight);
void merge(std::vector<Use>& uses);

}  // namespace waywiser::sim
