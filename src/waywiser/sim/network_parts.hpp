#pragma once

#include <map>
#include <utility>

#include "waywiser/sim/network.hpp"

namespace waywiser::sim {

// The common part of all kinds of network: the ports' hops, and hops between switches that can be degraded.
class SwitchedNetwork : public Network {
 public:
  SwitchedNetwork(NetworkSpec spec, FlowNetwork& links);
  // Rooted at the switch above the first port, where the ways of all to it are a tree.
  SwitchTree tree_over(const std::vector<Port>& ports, std::size_t number) const override;
  std::size_t cables() const override { return count_; }

 protected:
  LinkId out(Port port) const { return first_ + 2 * number(port); }
  LinkId into(Port port) const { return first_ + 2 * number(port) + 1; }
  // A hop between switches, in one direction. Degraded links are counted over both directions as one.
  LinkId add_cable(double port_rates);
  LinkId add_direction();
  bool failed(LinkId link) const { return failed_.contains(link); }
  // A way that is not spread.
  virtual Crossing one_way(Port from, Port to) const { return cross(from, to); }
  // The hop between two switches that leads the other way.
  virtual LinkId back(LinkId link) const { return link; }
  // Selects by `key` one of the working hops among `count` parallel ones: first, first + stride, ...
  LinkId pick(LinkId first, LinkId stride, int count, std::size_t key) const;
  const NetworkSpec& spec() const noexcept { return spec_; }

 private:
  std::uint32_t number(Port port) const { return static_cast<std::uint32_t>(port.node * spec_.rails + port.rail); }
  NetworkSpec spec_;
  FlowNetwork& links_;
  LinkId first_ = 0;
  std::map<std::size_t, double> sick_;  // share by cable
  std::size_t count_ = 0;
  double last_rate_ = 0;
  bool last_failed_ = false;
  std::map<LinkId, bool> failed_;
};

std::unique_ptr<Network> make_fat_tree(const NetworkSpec& spec, FlowNetwork& links);
std::unique_ptr<Network> make_dragonfly(const NetworkSpec& spec, FlowNetwork& links);
std::unique_ptr<Network> make_torus(const NetworkSpec& spec, FlowNetwork& links);

}  // namespace waywiser::sim
