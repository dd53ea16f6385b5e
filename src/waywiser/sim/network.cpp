#include "waywiser/sim/network.hpp"

#include <algorithm>
#include <set>

#include "waywiser/base/error.hpp"
#include "waywiser/sim/network_parts.hpp"

namespace waywiser::sim {
namespace {

constexpr double dead = 1e-6;  // what stands for the rate of a failed or absent hop, which no way takes

class OneSwitch : public SwitchedNetwork {
 public:
  using SwitchedNetwork::SwitchedNetwork;
  Crossing cross(Port from, Port to) const override { return {{out(from), into(to)}, 1}; }
};

std::unique_ptr<Network> made(const NetworkSpec& spec, FlowNetwork& links) {
  if (spec.kind == "fat-tree" || spec.kind == "rail-optimised") return make_fat_tree(spec, links);
  if (spec.kind == "dragonfly") return make_dragonfly(spec, links);
  if (spec.kind == "torus") return make_torus(spec, links);
  if (spec.kind == "switch") return std::make_unique<OneSwitch>(spec, links);
  throw Error(ErrorKind::invalid_input, quoted(spec.kind, 40) +
                                            " is no network: write switch, fat-tree, dragonfly, torus or "
                                            "rail-optimised");
}

}  // namespace

SwitchedNetwork::SwitchedNetwork(NetworkSpec spec, FlowNetwork& links) : spec_(std::move(spec)), links_(links) {
  for (const SickLink& sick : spec_.sick) sick_[sick.index] = sick.share;
  first_ = static_cast<LinkId>(links.links());
  const auto rate = [&](int port) {
    return spec_.rates_of_ports.empty() ? spec_.port_rate : spec_.rates_of_ports.at(static_cast<std::size_t>(port));
  };
  for (int port = 0; port < spec_.nodes * spec_.rails; ++port)
    for (int direction = 0; direction < 2; ++direction) links.add_link(std::max(rate(port), dead));
}

LinkId SwitchedNetwork::add_cable(double port_rates) {
  const auto sick = sick_.find(count_++);
  const double share = sick == sick_.end() ? 1 : sick->second;
  last_failed_ = share <= 0;
  last_rate_ = spec_.port_rate * port_rates * std::max(share, dead);
  return add_direction();
}

LinkId SwitchedNetwork::add_direction() {
  const LinkId link = links_.add_link(last_rate_);
  if (last_failed_) failed_[link] = true;
  return link;
}

LinkId SwitchedNetwork::pick(LinkId first, LinkId stride, int count, std::size_t key) const {
  for (int tried = 0; tried < count; ++tried) {
    const auto chosen = static_cast<LinkId>((key + static_cast<std::size_t>(tried)) % static_cast<std::size_t>(count));
    if (!failed(first + stride * chosen)) return first + stride * chosen;
  }
  throw Error(ErrorKind::unavailable, "all links between two switches of the network have failed");
}

// The ways of all ports to the first one join where they meet, since only the receiver determines the next hop.
SwitchTree SwitchedNetwork::tree_over(const std::vector<Port>& ports, std::size_t) const {
  std::set<LinkId> seen;
  SwitchTree tree{{}, 1};
  for (const Port& port : ports) {
    seen.insert({out(port), into(port)});
    if (port.node == ports.front().node) continue;
    const Crossing up = one_way(port, ports.front());
    for (auto link = up.links.begin() + 1; link + 1 != up.links.end(); ++link) seen.insert({*link, back(*link)});
    tree.depth = std::max(tree.depth, up.switches);
  }
  tree.links.assign(seen.begin(), seen.end());
  return tree;
}

std::unique_ptr<Network> make_network(const NetworkSpec& spec, FlowNetwork& links) {
  if (spec.nodes < 1 || spec.nodes > most_nodes || spec.rails < 1 || spec.rails > 64)
    throw Error(ErrorKind::invalid_input, "a cluster has 1 to " + std::to_string(most_nodes) + " nodes");
  if (!(spec.port_rate > 0)) throw Error(ErrorKind::invalid_input, "the nodes have no NIC with a known rate");
  std::unique_ptr<Network> network = made(spec, links);
  for (const SickLink& sick : spec.sick)
    if (sick.index >= network->cables())
      throw Error(ErrorKind::invalid_input, "there is no link " + std::to_string(sick.index) + ": the network has " +
                                                std::to_string(network->cables()) +
                                                " cables between switches, counted from 0");
  return network;
}

}  // namespace waywiser::sim
