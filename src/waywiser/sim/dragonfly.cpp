#include <algorithm>

#include "waywiser/base/error.hpp"
#include "waywiser/sim/network_parts.hpp"

// Dragonfly (Kim, Dally, Scott, Abts, ISCA 2008): groups of routers that are all connected to each other, each two
// groups by one bundle of cables. Adaptive routing takes the minimal way, and around failed cables every other group in
// equal shares; that it also leaves a minimal way that is busy is not modelled. Minimal ways: router, gateway of the
// group, gateway of the other group, router. The bundle of groups g and h ends at the router (h mod routers) of g. With
// p nodes a router a bundle carries what a balanced dragonfly has: routers * p * rails port rates shared out over the
// other groups.

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

  Crossing cross(Port from, Port to) const override { return way_of(from, to, true); }

 protected:
  Crossing one_way(Port from, Port to) const override { return way_of(from, to, false); }
  // Hop a>b of n switches is a * n + b from the first of their hops.
  LinkId back(LinkId link) const override {
    const auto groups = static_cast<LinkId>(groups_), routers = static_cast<LinkId>(routers_);
    const bool global = link >= global_;
    const LinkId size = global ? groups : routers, number = link - (global ? global_ : local_);
    const LinkId from = number / size % size, to = number % size;
    return link - from * size - to + to * size + from;
  }

 private:
  // A router, by its group and its number there.
  struct Router {
    int group, number;
  };

  Crossing way_of(Port from, Port to, bool spread) const {
    Crossing way{{out(from)}, 1};
    const int source = from.node / nodes_, goal = to.node / nodes_;
    const Router first{source / routers_, source % routers_}, last{goal / routers_, goal % routers_};
    std::vector<LinkId> links;
    if (through(links, first, last.group, last)) {
      way.links.insert(way.links.end(), links.begin(), links.end());
      way.switches += static_cast<int>(links.size());
    } else {
      detour(way, first, last, spread);
    }
    way.links.push_back(into(to));
    return way;
  }

  // Over every other group that both groups reach, or over the first of them.
  void detour(Crossing& way, Router first, Router last, bool spread) const {
    std::vector<std::vector<LinkId>> found;
    for (int by = 0; spec().adaptive && by < groups_ && (spread || found.empty()); ++by) {
      std::vector<LinkId> links;
      if (by != first.group && by != last.group && through(links, first, by, last)) found.push_back(std::move(links));
    }
    if (found.empty())
      throw Error(ErrorKind::unavailable,
                  spec().adaptive ? "links of the dragonfly have failed, and no other group leads around them"
                                  : "a link of the dragonfly that the minimal way needs has failed");
    std::size_t most = 0;
    for (const std::vector<LinkId>& links : found) {
      most = std::max(most, links.size());
      for (const LinkId link : links) way.spread.push_back({link, 1.0 / static_cast<double>(found.size())});
    }
    way.switches += static_cast<int>(most);
    if (spread) return;
    way.links.insert(way.links.end(), found.front().begin(), found.front().end());
    way.spread.clear();
  }

  // Appends the hops between switches over group `by`. False if one has failed.
  bool through(std::vector<LinkId>& links, Router at, int by, Router last) const {
    return to_group(links, at, by) && to_group(links, at, last.group) && step(links, at, last.number);
  }

  bool to_group(std::vector<LinkId>& links, Router& at, int group) const {
    if (at.group == group) return true;
    const LinkId bundle = global_ + static_cast<LinkId>(at.group * groups_ + group);
    if (!step(links, at, group % routers_) || failed(bundle)) return false;
    links.push_back(bundle);
    at = {group, at.group % routers_};
    return true;
  }

  // Within a group, over a third router where the cable has failed and the routing is adaptive.
  bool step(std::vector<LinkId>& links, Router& at, int to) const {
    if (at.number == to) return true;
    const auto hop = [&](int a, int b) {
      return local_ + static_cast<LinkId>((at.group * routers_ + a) * routers_ + b);
    };
    bool found = !failed(hop(at.number, to));
    if (found) links.push_back(hop(at.number, to));
    for (int by = 0; !found && spec().adaptive && by < routers_; ++by) {
      found = by != at.number && by != to && !failed(hop(at.number, by)) && !failed(hop(by, to));
      if (found) links.insert(links.end(), {hop(at.number, by), hop(by, to)});
    }
    at.number = to;
    return found;
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
