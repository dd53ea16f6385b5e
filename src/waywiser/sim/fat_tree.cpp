#include <algorithm>
#include <cmath>
#include <set>

#include "waywiser/base/error.hpp"
#include "waywiser/sim/network_parts.hpp"

// Fat tree (Leiserson 1985) of switches with `radix` ports, routed by destination (D-mod-k, Zahavi 2012): the way up
// depends only on the receiver. Adaptive routing spreads the packets over all spines whose links work; above a spine
// the receiver still says which core switch. Leaf: radix * taper / (1 + taper) hosts below, the other ports up. Two
// levels reach hosts * radix ports; more ports get pods of `radix / 2` leaves under a third level. Rail-optimised: NIC
// r of every node is on the leaves of rail r, so that nodes that exchange rail by rail stay below one leaf as long as
// it has room.

namespace waywiser::sim {
namespace {

constexpr const char* no_way = "no way is left between two leaves of the fat tree: their links have failed";

class FatTree : public SwitchedNetwork {
 public:
  FatTree(const NetworkSpec& spec, FlowNetwork& links) : SwitchedNetwork(spec, links) {
    below_ = std::clamp(static_cast<int>(std::lround(spec.radix * spec.taper / (1 + spec.taper))), 1, spec.radix - 1);
    up_ = std::max(1, std::min(spec.radix - below_, static_cast<int>(std::lround(below_ / spec.taper))));
    const int ports = spec.nodes * spec.rails;
    leaves_ = (ports + below_ - 1) / below_;
    if (spec.kind == "rail-optimised") leaves_ = spec.rails * ((spec.nodes + below_ - 1) / below_);
    leaves_in_pod_ = leaves_ <= spec.radix ? leaves_ : std::max(1, spec.radix / 2);
    const int pods = (leaves_ + leaves_in_pod_ - 1) / leaves_in_pod_;
    cables_ = static_cast<LinkId>(links.links());
    if (leaves_ == 1) return;
    for (int i = 0; i < leaves_ * up_; ++i) add_pair();
    core_ = static_cast<LinkId>(links.links());
    if (pods > 1)  // the second level is not tapered: as many links up as down
      for (int i = 0; i < pods * up_ * leaves_in_pod_; ++i) add_pair();
  }

  Crossing cross(Port from, Port to) const override {
    Crossing way{{out(from)}, 1};
    const int a = leaf(from), b = leaf(to);
    const auto key = static_cast<std::size_t>(b * below_ + place(to));
    if (a != b) spec().adaptive ? spread(way, a, b, key) : climb(way, a, b, key);
    way.links.push_back(into(to));
    return way;
  }

  // Over one spine, and with several pods over one switch above it.
  SwitchTree tree_over(const std::vector<Port>& ports, std::size_t number) const override {
    SwitchTree tree{{}, 1};
    std::set<int> leaves, pods;
    for (const Port& port : ports) {
      tree.links.insert(tree.links.end(), {out(port), into(port)});
      leaves.insert(leaf(port));
      pods.insert(leaf(port) / leaves_in_pod_);
    }
    for (std::size_t tried = 0; leaves.size() > 1 && tree.depth == 1; ++tried) {
      if (tried == static_cast<std::size_t>(up_ * leaves_in_pod_))
        throw Error(ErrorKind::unavailable, "no tree of the fat tree's links is left: some have failed");
      const std::size_t way = (number + tried) % static_cast<std::size_t>(up_ * leaves_in_pod_);
      join(tree, leaves, pods, static_cast<int>(way) % up_, static_cast<int>(way) / up_);
    }
    return tree;
  }

 private:
  // Adds the cables of the leaves to a spine and of the pods to a core switch, if none of them has failed.
  void join(SwitchTree& tree, const std::set<int>& leaves, const std::set<int>& pods, int spine, int core) const {
    std::vector<LinkId> cables;
    for (const int leaf : leaves) cables.push_back(cables_ + 2 * static_cast<LinkId>(leaf * up_ + spine));
    for (const int pod : pods)
      if (pods.size() > 1)
        cables.push_back(core_ + 2 * static_cast<LinkId>((pod * up_ + spine) * leaves_in_pod_ + core));
    if (std::ranges::any_of(cables, [&](LinkId cable) { return failed(cable); })) return;
    for (const LinkId cable : cables) tree.links.insert(tree.links.end(), {cable, cable + 1});
    tree.depth = pods.size() > 1 ? 3 : 2;
  }

  void add_pair() {
    add_cable(1);
    add_direction();
  }

  int leaf(Port port) const {
    if (spec().kind == "rail-optimised") return port.rail * (leaves_ / spec().rails) + port.node / below_;
    return (port.node * spec().rails + port.rail) / below_;
  }

  // Among the ports of its leaf. Receivers are numbered leaf by leaf, so that those of a leaf use different ways down.
  int place(Port port) const {
    return (spec().kind == "rail-optimised" ? port.node : port.node * spec().rails + port.rail) % below_;
  }

  void spread(Crossing& way, int a, int b, std::size_t key) const {
    const LinkId up = cables_ + 2 * static_cast<LinkId>(a * up_);
    const LinkId down = cables_ + 2 * static_cast<LinkId>(b * up_) + 1;
    Crossing every;
    LinkId spines = 0;
    for (LinkId spine = 0; spine < static_cast<LinkId>(up_); ++spine) {
      if (failed(up + 2 * spine) || failed(down + 2 * spine)) continue;
      every.links.insert(every.links.end(), {up + 2 * spine, down + 2 * spine});
      if (a / leaves_in_pod_ != b / leaves_in_pod_) pass_core(every, a, b, spine, key);
      ++spines;
    }
    if (spines == 0) throw Error(ErrorKind::unavailable, no_way);
    way.switches = std::max(3, every.switches);
    for (const LinkId link : every.links) way.spread.push_back({link, 1.0 / spines});
  }

  // Hop i of a leaf: up at cables_ + 2 * (leaf * up_ + i), down beside it. The spine that both use must be one: a way
  // up that has failed on either side is passed over on both.
  void climb(Crossing& way, int a, int b, std::size_t key) const {
    const LinkId up = cables_ + 2 * static_cast<LinkId>(a * up_);
    const LinkId down = cables_ + 2 * static_cast<LinkId>(b * up_) + 1;
    for (int tried = 0; tried < up_; ++tried) {
      const auto spine = static_cast<LinkId>((key + static_cast<std::size_t>(tried)) % static_cast<std::size_t>(up_));
      if (failed(up + 2 * spine) || failed(down + 2 * spine)) continue;
      way.links.push_back(up + 2 * spine);
      way.switches = 3;
      if (a / leaves_in_pod_ != b / leaves_in_pod_) pass_core(way, a, b, spine, key);
      way.links.push_back(down + 2 * spine);
      return;
    }
    throw Error(ErrorKind::unavailable, no_way);
  }

  void pass_core(Crossing& way, int a, int b, LinkId spine, std::size_t key) const {
    const auto each = static_cast<LinkId>(leaves_in_pod_);
    const LinkId from = core_ + 2 * each * (static_cast<LinkId>(a / leaves_in_pod_ * up_) + spine);
    const LinkId to = core_ + 2 * each * (static_cast<LinkId>(b / leaves_in_pod_ * up_) + spine) + 1;
    const std::size_t over = key / static_cast<std::size_t>(up_);
    way.links.push_back(pick(from, 2, leaves_in_pod_, over));
    way.links.push_back(pick(to, 2, leaves_in_pod_, over));
    way.switches = 5;
  }

  int below_ = 0, up_ = 0, leaves_ = 0, leaves_in_pod_ = 0;
  LinkId cables_ = 0, core_ = 0;
};

}  // namespace

std::unique_ptr<Network> make_fat_tree(const NetworkSpec& spec, FlowNetwork& links) {
  if (spec.radix < 4 || spec.radix > 1024)
    throw Error(ErrorKind::invalid_input, "a fat tree has switches of 4 to 1024 ports");
  if (!(spec.taper >= 1 && spec.taper <= 64))
    throw Error(ErrorKind::invalid_input, "the taper of a fat tree is from 1:1 to 64:1");
  return std::make_unique<FatTree>(spec, links);
}

}  // namespace waywiser::sim
