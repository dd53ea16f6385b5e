#include <array>

#include "waywiser/base/error.hpp"
#include "waywiser/sim/network_parts.hpp"

// Torus of one to six dimensions, a node (with all its rails) at each place; ways in order of dimension, the shorter
// way round, at equal length upwards (Dally and Towles, Principles and Practices of Interconnection Networks,
// 2004, 8.4.2).

namespace waywiser::sim {
namespace {

class Torus : public SwitchedNetwork {
 public:
  Torus(const NetworkSpec& spec, FlowNetwork& links) : SwitchedNetwork(spec, links) {
    first_ = static_cast<LinkId>(links.links());
    for (int node = 0; node < spec.nodes; ++node)
      for (std::size_t dimension = 0; dimension < spec.shape.size(); ++dimension) {
        add_cable(spec.rails);  // to the next place
        add_direction();        // and from it
      }
  }

  Crossing cross(Port from, Port to) const override {
    Crossing way{{out(from)}, 1};
    int node = from.node, stride = 1;
    for (std::size_t dimension = 0; dimension < spec().shape.size(); ++dimension) {
      const int size = spec().shape[dimension];
      walk(way, node, to.node, dimension, stride, size);
      stride *= size;
    }
    way.links.push_back(into(to));
    return way;
  }

 protected:
  LinkId back(LinkId link) const override { return first_ + ((link - first_) ^ 1U); }

 private:
  void walk(Crossing& way, int& node, int goal, std::size_t dimension, int stride, int size) const {
    const int ahead = (goal / stride % size - node / stride % size + size) % size;
    bool up = 2 * ahead <= size;
    if (spec().adaptive && blocked(node, goal, dimension, stride, size, up)) up = !up;
    for (int steps = up ? ahead : size - ahead; steps > 0; --steps) {
      const int here = node / stride % size;
      const int next = node + ((here + (up ? 1 : size - 1)) % size - here) * stride;
      const LinkId link = up ? cable(node, dimension) : cable(next, dimension) + 1;
      if (failed(link))
        throw Error(ErrorKind::unavailable,
                    "a link of the torus that the way needs has failed; dimension order has no other way");
      way.links.push_back(link);
      node = next;
      ++way.switches;
    }
  }

  bool blocked(int node, int goal, std::size_t dimension, int stride, int size, bool up) const {
    while (node / stride % size != goal / stride % size) {
      const int here = node / stride % size;
      const int next = node + ((here + (up ? 1 : size - 1)) % size - here) * stride;
      if (failed(up ? cable(node, dimension) : cable(next, dimension) + 1)) return true;
      node = next;
    }
    return false;
  }

  LinkId cable(int node, std::size_t dimension) const {
    return first_ +
           2 * (static_cast<LinkId>(node) * static_cast<LinkId>(spec().shape.size()) + static_cast<LinkId>(dimension));
  }

  LinkId first_ = 0;
};

}  // namespace

std::unique_ptr<Network> make_torus(const NetworkSpec& spec, FlowNetwork& links) {
  long places = 1;
  for (const int size : spec.shape) {
    if (size < 1 || size > most_nodes) throw Error(ErrorKind::invalid_input, "a side of a torus has 1 or more places");
    places *= size;
    if (places > most_nodes) break;
  }
  if (spec.shape.empty() || spec.shape.size() > 6 || places != spec.nodes)
    throw Error(ErrorKind::invalid_input, "the sides of the torus must multiply to the " + std::to_string(spec.nodes) +
                                              " nodes of the cluster, in 1 to 6 dimensions");
  return std::make_unique<Torus>(spec, links);
}

}  // namespace waywiser::sim
