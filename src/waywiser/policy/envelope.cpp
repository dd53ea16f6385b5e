#include "waywiser/policy/envelope.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace waywiser {
namespace {

constexpr double order_bias = 1e-4;  // per place in the order: decides between equals only
constexpr double most_of_uncertain = 0.5;
constexpr double ordinary_noise = 0.035;  // of a ratio of two medians that are known as well as was wanted
constexpr double forced = 1e3;  // a switch outside the tolerance, should the rounding of sizes forbid all others

std::size_t fastest(std::span<const Cost> costs, double bytes) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < costs.size(); ++i)
    if (costs[i].seconds(bytes) < costs[best].seconds(bytes)) best = i;
  return best;
}

// The size in (left, right) at which two linear pieces cost the same; NaN if there is none.
double crossing(const Cost& a, const Cost& b, double left, double right) {
  const double at_left = a.seconds(left) - b.seconds(left);
  const double at_right = a.seconds(right) - b.seconds(right);
  if (!std::isfinite(at_left) || !std::isfinite(at_right) || at_left * at_right >= 0) return NAN;
  return left + (right - left) * at_left / (at_left - at_right);
}

// Adds the breakpoints of the exact lower envelope inside (left, right), where every cost is one linear piece.
void add_breakpoints(std::span<const Cost> costs, Bytes left, Bytes right, std::set<Bytes>& nodes) {
  if (right - left < 2) return;
  const std::size_t a = fastest(costs, static_cast<double>(left));
  const std::size_t b = fastest(costs, static_cast<double>(right));
  if (a == b) return;
  const double meeting = crossing(costs[a], costs[b], static_cast<double>(left), static_cast<double>(right));
  if (std::isnan(meeting)) return;
  const Bytes middle = std::clamp(static_cast<Bytes>(meeting), left + 1, right - 1);
  if (!nodes.insert(middle).second) return;
  add_breakpoints(costs, left, middle, nodes);
  add_breakpoints(costs, middle, right, nodes);
}

// The sizes between which every cost, and the lower envelope of all, is one linear piece.
std::vector<Bytes> envelope_nodes(std::span<const Cost> costs) {
  std::set<Bytes> nodes;
  for (const Cost& cost : costs) {
    for (const Point& point : cost.points()) nodes.insert(point.bytes);
    if (cost.empty()) continue;
    nodes.insert(cost.points().back().bytes + 1);
    if (cost.points().front().bytes > 0) nodes.insert(cost.points().front().bytes - 1);
  }
  const std::vector<Bytes> measured(nodes.begin(), nodes.end());
  for (std::size_t i = 1; i < measured.size(); ++i) add_breakpoints(costs, measured[i - 1], measured[i], nodes);
  return {nodes.begin(), nodes.end()};
}

// Finds the cheapest sequence of choices over the nodes: excess over the fastest plus a price for each switch.
class Selection {
 public:
  Selection(std::span<const Cost> costs, std::vector<Bytes> nodes, const Hysteresis& hysteresis)
      : costs_(costs), hysteresis_(hysteresis), nodes_(std::move(nodes)) {
    for (const Bytes node : nodes_) add_node(static_cast<double>(node));
  }

  // One choice for each node; costs.size() where nothing is known.
  std::vector<std::size_t> best() {
    std::vector<double> total = penalty_[0];
    for (std::size_t node = 1; node < nodes_.size(); ++node) total = step(total, node);
    std::vector<std::size_t> choices(nodes_.size(), costs_.size());
    std::size_t choice = least(total);
    for (std::size_t node = nodes_.size(); node-- > 0;) {
      if (node + 1 < nodes_.size()) choice = from_[node][choice];
      if (best_[node] < infinity) choices[node] = choice;
    }
    return choices;
  }

 private:
  static std::size_t least(const std::vector<double>& total) {
    return static_cast<std::size_t>(std::min_element(total.begin(), total.end()) - total.begin());
  }

  void add_node(double bytes) {
    const std::size_t winner = fastest(costs_, bytes);
    const double best = costs_[winner].seconds(bytes);
    std::vector<double> penalty(costs_.size(), 0);
    for (std::size_t i = 0; i < costs_.size() && best < infinity; ++i)
      penalty[i] = price(i, winner, bytes) + order_bias * static_cast<double>(i);
    penalty_.push_back(penalty);
    best_.push_back(best);
  }

  // The cost of choosing `i` instead of the fastest. The part of the difference that noise explains counts little, the
  // less the noisier; but it adds up over the sizes: if single sizes cannot tell, all of them together can.
  double price(std::size_t i, std::size_t winner, double bytes) const {
    const double excess = costs_[i].seconds(bytes) / costs_[winner].seconds(bytes) - 1;
    if (excess == infinity) return infinity;
    const double noise = std::hypot(uncertainty(i, bytes), uncertainty(winner, bytes));
    if (excess - std::max(0.0, noise - ordinary_noise) > hysteresis_.tolerance) return infinity;
    if (excess <= hysteresis_.equal && overlap(costs_[i].interval(bytes), costs_[winner].interval(bytes))) return 0;
    const double certain = std::max(0.0, excess - noise);
    const double belief = noise > 0 ? std::min(1.0, excess / (2 * noise)) : 1;
    return certain + most_of_uncertain * belief * (excess - certain);
  }

  // Half the width of the confidence interval, in parts of the median.
  double uncertainty(std::size_t i, double bytes) const {
    const Interval interval = costs_[i].interval(bytes);
    return (interval.high - interval.low) / 2 / costs_[i].seconds(bytes);
  }

  std::vector<double> step(const std::vector<double>& total, std::size_t node) {
    std::vector<double> next(costs_.size(), infinity);
    std::vector<std::size_t> from(costs_.size(), 0);
    const std::size_t cheapest = least(total);
    for (std::size_t to = 0; to < costs_.size(); ++to) {
      if (penalty_[node][to] == infinity) continue;
      from[to] = cheapest;
      next[to] = total[cheapest] + penalty_[node][to] + forced;
      for (std::size_t i = 0; i < costs_.size(); ++i) {
        if (total[i] == infinity || (i != to && !may_switch(i, to, node))) continue;
        const double sum = total[i] + penalty_[node][to] + (i == to ? 0 : hysteresis_.switching);
        if (sum < next[to]) {
          next[to] = sum;
          from[to] = i;
        }
      }
    }
    from_.push_back(std::move(from));
    return next;
  }

  // Whether some size between node-1 and node exists up to which `i` and from which `to` keeps the tolerance.
  bool may_switch(std::size_t i, std::size_t to, std::size_t node) const {
    if (penalty_[node - 1][to] < infinity || penalty_[node][i] < infinity) return true;
    if (nodes_[node] - nodes_[node - 1] == 1) return true;
    const double left = static_cast<double>(nodes_[node - 1]), right = static_cast<double>(nodes_[node]);
    const double middle = crossing(costs_[i], costs_[to], left, right);
    if (std::isnan(middle)) return false;
    return price(to, fastest(costs_, middle), middle) < infinity;
  }

  std::span<const Cost> costs_;
  Hysteresis hysteresis_;
  std::vector<Bytes> nodes_;
  std::vector<std::vector<double>> penalty_;
  std::vector<double> best_;
  std::vector<std::vector<std::size_t>> from_;
};

// The last size that `a` serves, from `left`, where it was chosen, to `right`, where `b` is.
Bytes boundary(const Cost& a, const Cost& b, Bytes left, Bytes right) {
  const double from = static_cast<double>(left), to = static_cast<double>(right);
  const double middle = crossing(a, b, from, to);
  if (!std::isnan(middle)) return std::clamp(static_cast<Bytes>(middle), left, right - 1);
  // They do not cross: the one that is faster throughout serves the inside.
  return b.known(from) && b.seconds(from) <= a.seconds(from) ? left : (a.known(to) ? right - 1 : left);
}

}  // namespace

std::vector<Segment> envelope(std::span<const Cost> costs, const Hysteresis& hysteresis) {
  if (std::all_of(costs.begin(), costs.end(), [](const Cost& cost) { return cost.empty(); })) return {};
  const std::vector<Bytes> nodes = envelope_nodes(costs);
  const std::vector<std::size_t> choices = Selection(costs, nodes, hysteresis).best();
  std::vector<Segment> segments;
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    if (choices[node] == costs.size()) continue;
    const bool adjoins = node > 0 && choices[node - 1] != costs.size();
    if (adjoins && segments.back().choice == choices[node]) {
      segments.back().to = nodes[node];
      continue;
    }
    Bytes from = nodes[node];
    if (adjoins) {
      segments.back().to = boundary(costs[segments.back().choice], costs[choices[node]], nodes[node - 1], nodes[node]);
      from = segments.back().to + 1;
    }
    segments.push_back({from, nodes[node], choices[node]});
  }
  return segments;
}

}  // namespace waywiser
