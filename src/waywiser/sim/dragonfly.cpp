#include <algorithm>

#include "waywiser/base/error.hpp"
#include "waywiser/sim/network_parts.hpp"

// Dragonfly (Kim, Dally, Scott, Abts, ISCA 2008): groups of routers that are all connected to each other, each two
// groups by one bundle of cables; minimal ways: router, gateway of the group, gateway of the other group, router. The
// bundle of groups g and h ends at the router (h mod routers) of g. With p nodes a router a bundle carries what a
// balanced dragonfly has: routers * p * rails port rates shared out over the other groups.

namespace waywiser::sim {
namespace {

class Dragonfly : public SwitchedNetwork {
 public:
  Dragonfly(const NetworkSpec& spec, FlowNetwork& links)
      : SwitchedNetwork(spec, links), groups_(spec.shape[0]), routers_(spec.shape[1]), nodes_(spec.shape[2]) {
    local_ = static_cast<LinkId>(links.links());
    for (int i = 0; i < groups_ * routers_ * routers_; ++i) add_cable(spec.rails);
    global_ = static_cast<LinkId>(links.links());
    const double bundle = std::max(1.0, static_cast<double>(routers_ * nodes_ * spec.rails) / std::max(1, groups_ - 1));
    for (int i = 0; i < groups_ * groups_; ++i) add_cable(bundle);
  }

  Crossing cross(Port from, Port to) const override {
    Crossing way{{out(from)}, 1};
    const int source = from.node / nodes_, destination = to.node / nodes_;
    const int a = source / routers_, b = destination / routers_;
    int here = source % routers_;
    if (a != b) {
      step(way, a, here, b % routers_);
      take(way, global_ + static_cast<LinkId>(a * groups_ + b));
      here = a % routers_;
    }
    step(way, b, here, destination % routers_);
    way.links.push_back(into(to));
    return way;
  }

 protected:
  // Hop a>b of n switches is a * n + b from the first of their hops.
  LinkId back(LinkId link) const override {
    const auto groups = static_cast<LinkId>(groups_), routers = static_cast<LinkId>(routers_);
    const bool global = link >= global_;
    const LinkId size = global ? groups : routers, number = link - (global ? global_ : local_);
    const LinkId from = number / size % size, to = number % size;
    return link - from * size - to + to * size + from;
  }

 private:
  void step(Crossing& way, int group, int from, int to) const {
    if (from != to) take(way, local_ + static_cast<LinkId>((group * routers_ + from) * routers_ + to));
  }

  void take(Crossing& way, LinkId link) const {
    if (failed(link))
      throw Error(ErrorKind::unavailable, "a link of the dragonfly that the minimal way needs has failed");
    way.links.push_back(link);
    ++way.switches;
  }

  int groups_, routers_, nodes_;
  LinkId local_ = 0, global_ = 0;
};

}  // namespace

std::unique_ptr<Network> make_dragonfly(const NetworkSpec& spec, FlowNetwork& links) {
  const bool three =
      spec.shape.size() == 3 && std::ranges::all_of(spec.shape, [](int n) { return n >= 1 && n <= 2048; });
  if (!three || static_cast<long>(spec.shape[0]) * spec.shape[1] * spec.shape[2] < spec.nodes)
    throw Error(ErrorKind::invalid_input,
                "a dragonfly is written dragonfly(groups, routers, nodes a router), with room for all " +
                    std::to_string(spec.nodes) + " nodes");
  return std::make_unique<Dragonfly>(spec, links);
}

}  // namespace waywiser::sim
