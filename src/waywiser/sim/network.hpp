#pragma once

#include <memory>
#include <string>
#include <vector>

#include "waywiser/base/json.hpp"
#include "waywiser/sim/flow_network.hpp"

namespace waywiser::sim {

// A NIC of a node.
struct Port {
  int node = 0;
  int rail = 0;  // which NIC of its node
};

struct Crossing {
  std::vector<LinkId> links;
  int switches = 0;
  std::vector<Use> spread{};  // hops over which adaptive routing spreads the packets, with their shares; may repeat
};

// A tree of switches that joins ports: its hops, each once, up and down.
struct SwitchTree {
  std::vector<LinkId> links;
  int depth = 0;  // switches from a port to the root
};

// The network between the NICs of a cluster. Source and destination fix the route, so that the same cluster gives the
// same times: static routing. With adaptive routing they fix the routes over which the packets are spread evenly. Every
// NIC has a hop out of the node and one into it, at the port's rate.
class Network {
 public:
  virtual ~Network() = default;
  virtual Crossing cross(Port from, Port to) const = 0;
  // One tree, for in-network reduction. Trees of other numbers share no hop between switches with it as long as the
  // network has another way.
  virtual SwitchTree tree_over(const std::vector<Port>& ports, std::size_t number) const = 0;
  // Links between switches, which can be degraded.
  virtual std::size_t cables() const = 0;
};

// A degraded link: the n-th hop between switches, with the remaining share of its rate.
struct SickLink {
  std::size_t index = 0;
  double share = 1;  // 0: failed; ways avoid it
};

struct NetworkSpec {
  std::string kind = "switch";  // switch, fat-tree, dragonfly, torus, rail-optimised
  int nodes = 1;
  int rails = 1;
  BytesPerSecond port_rate = 0;  // also of what lies between switches
  // Of node 0's rails, then node 1's, ...; 0: the node has no such rail. Empty: all as port_rate.
  std::vector<BytesPerSecond> rates_of_ports{};
  double taper = 1;        // fat tree: hosts to up-links, 2 for 2:1
  int radix = 36;          // ports of a switch
  std::vector<int> shape;  // torus: sizes; dragonfly: groups, routers a group, nodes a router
  std::vector<SickLink> sick;
  bool adaptive = false;
};

inline constexpr int most_nodes = 100000;

// Adds the hops to `links`. Throws invalid_input, for example for a shape that cannot hold the nodes.
std::unique_ptr<Network> make_network(const NetworkSpec& spec, FlowNetwork& links);

}  // namespace waywiser::sim
