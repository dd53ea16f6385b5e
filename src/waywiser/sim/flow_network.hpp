#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "waywiser/base/units.hpp"

// Max-min fair sharing of links among flows (Bertsekas and Gallager, Data Networks, 1992, section 6.5.2).
//
// A flow f uses each of its hops l with a weight w(f,l); its rate x(f) is feasible when
//     for all l: sum over f of w(f,l) x(f) <= capacity(l),      x(f) <= cap(f).
// It is max-min fair when every flow either runs at its cap or crosses a hop that is full and on which no flow is
// faster: its bottleneck. Progressive filling finds it: raise all rates together; whoever meets a full hop stays.
//
// Incremental: flows that started, and those whose bottleneck a finished flow crossed, are filled anew with all others
// held fixed. Where that breaks another flow's certificate, that flow joins and the filling is repeated. The
// certificate is necessary and sufficient, so the result is the one that filling from scratch gives.

namespace waywiser::sim {

using LinkId = std::uint32_t;
using FlowId = std::uint32_t;
inline constexpr double no_cap = std::numeric_limits<double>::infinity();

struct Use {
  LinkId link = 0;
  double weight = 1;  // bytes over the link per byte of the flow

  bool operator==(const Use&) const = default;
};

class FlowNetwork {
 public:
  LinkId add_link(BytesPerSecond capacity);
  // Throws invalid_input for a flow without hops and cap, which has no rate. A link named twice counts with both
  // weights.
  FlowId start(std::span<const Use> uses, BytesPerSecond cap = no_cap);
  void finish(FlowId flow);
  // Updates all rates. changed() then lists the flows whose rate has changed.
  void solve();
  std::span<const FlowId> changed() const noexcept { return changed_; }

  BytesPerSecond rate(FlowId flow) const { return flows_[flow].rate; }
  BytesPerSecond cap(FlowId flow) const { return flows_[flow].cap; }
  BytesPerSecond capacity(LinkId link) const { return links_[link].capacity; }
  std::vector<Use> uses(FlowId flow) const;
  std::vector<FlowId> flows_on(LinkId link) const;
  std::size_t links() const noexcept { return links_.size(); }
  std::size_t flows_filled() const noexcept { return filled_; }  // by all calls of solve: the cost

 private:
  struct Hop {
    LinkId link;
    double weight;
    std::uint32_t place;  // in the link's list
  };
  struct Flow {
    std::vector<Hop> hops;
    double cap = no_cap, rate = 0, old_rate = 0;
    std::int64_t bottleneck = -1;  // a link, or -1: its cap
    bool alive = false, filling = false, fixed = false;
  };
  struct Member {
    FlowId flow;
    std::uint32_t hop;
  };
  struct Link {
    double capacity;
    std::vector<Member> members;
    double left = 0, weight = 0;  // while filling
    bool touched = false;
  };

  void add_hop(FlowId flow, const Use& use, std::size_t uses);
  void join(FlowId flow);
  void touch(LinkId link);
  void prepare(LinkId link);
  void fill();
  void fix(FlowId flow, double rate, std::int64_t bottleneck);
  bool widen();
  bool widen_at(LinkId link, bool whole);

  std::vector<Link> links_;
  std::vector<Flow> flows_;
  std::vector<FlowId> free_, started_, filling_, changed_;
  std::vector<LinkId> freed_, touched_;
  struct Level {
    double level;
    std::uint32_t id;
    bool is_link;
    bool operator>(const Level& other) const {
      if (level != other.level) return level > other.level;
      return is_link != other.is_link ? other.is_link : id > other.id;
    }
  };
  std::vector<Level> heap_;
  // For a flow with many hops: the start() that named a link last, and the number of the hop.
  std::vector<std::pair<std::uint64_t, std::uint32_t>> named_;
  std::uint64_t starts_ = 0;
  int rounds_ = 0;
  std::size_t filled_ = 0;
};

}  // namespace waywiser::sim
