#include "waywiser/sim/flow_network.hpp"

#include <algorithm>
#include <cmath>

#include "waywiser/base/error.hpp"

namespace waywiser::sim {
namespace {

constexpr double tolerance = 1e-9;
constexpr std::size_t few_hops = 16;
constexpr int patient_rounds = 24;  // afterwards whole links join, so that long chains do not take many rounds

}  // namespace

LinkId FlowNetwork::add_link(BytesPerSecond capacity) {
  if (!std::isfinite(capacity) || capacity <= 0)
    throw Error(ErrorKind::invalid_input, "the capacity of a hop must be a positive number of bytes per second");
  links_.push_back({capacity, {}});
  return static_cast<LinkId>(links_.size() - 1);
}

FlowId FlowNetwork::start(std::span<const Use> uses, BytesPerSecond cap) {
  if (!(cap > 0) || (uses.empty() && cap == no_cap))
    throw Error(ErrorKind::invalid_input, "a flow needs a hop or a positive cap on its rate");
  if (free_.empty()) {
    free_.push_back(static_cast<FlowId>(flows_.size()));
    flows_.emplace_back();
  }
  const FlowId id = free_.back();
  free_.pop_back();
  Flow& flow = flows_[id];
  flow.hops.clear();
  flow.cap = cap;
  flow.rate = flow.old_rate = 0;
  flow.bottleneck = -1;
  flow.alive = true;
  ++starts_;
  if (uses.size() > few_hops) named_.resize(links_.size());
  for (const Use& use : uses) add_hop(id, use, uses.size());
  started_.push_back(id);
  return id;
}

void FlowNetwork::add_hop(FlowId id, const Use& use, std::size_t uses) {
  std::vector<Hop>& hops = flows_[id].hops;
  auto known = hops.end();
  if (uses <= few_hops)
    known = std::ranges::find(hops, use.link, &Hop::link);
  else if (named_[use.link].first == starts_)
    known = hops.begin() + named_[use.link].second;
  if (known != hops.end()) {
    known->weight += use.weight;
    return;
  }
  const auto number = static_cast<std::uint32_t>(hops.size());
  if (uses > few_hops) named_[use.link] = {starts_, number};
  std::vector<Member>& members = links_[use.link].members;
  hops.push_back({use.link, use.weight, static_cast<std::uint32_t>(members.size())});
  members.push_back({id, number});
}

void FlowNetwork::finish(FlowId id) {
  Flow& flow = flows_[id];
  for (const Hop& hop : flow.hops) {
    std::vector<Member>& members = links_[hop.link].members;
    members[hop.place] = members.back();
    flows_[members[hop.place].flow].hops[members[hop.place].hop].place = hop.place;
    members.pop_back();
    freed_.push_back(hop.link);
  }
  flow.alive = false;
  free_.push_back(id);
}

std::vector<Use> FlowNetwork::uses(FlowId flow) const {
  std::vector<Use> found;
  for (const Hop& hop : flows_[flow].hops) found.push_back({hop.link, hop.weight});
  return found;
}

std::vector<FlowId> FlowNetwork::flows_on(LinkId link) const {
  std::vector<FlowId> found;
  for (const Member& member : links_[link].members) found.push_back(member.flow);
  return found;
}

void FlowNetwork::join(FlowId id) {
  Flow& flow = flows_[id];
  if (flow.filling || !flow.alive) return;
  flow.filling = true;
  flow.old_rate = flow.rate;
  filling_.push_back(id);
  for (const Hop& hop : flow.hops) touch(hop.link);
}

void FlowNetwork::touch(LinkId id) {
  if (links_[id].touched) return;
  links_[id].touched = true;
  touched_.push_back(id);
}

void FlowNetwork::solve() {
  changed_.clear();
  if (started_.empty() && freed_.empty()) return;
  for (const FlowId id : started_) join(id);
  for (const LinkId link : freed_)
    for (const Member& member : links_[link].members)
      if (flows_[member.flow].bottleneck == link) join(member.flow);
  started_.clear();
  freed_.clear();
  rounds_ = 0;
  do {
    fill();
    ++rounds_;
  } while (widen());
  for (const FlowId id : filling_) {
    flows_[id].filling = false;
    if (flows_[id].rate != flows_[id].old_rate) changed_.push_back(id);
  }
  for (const LinkId link : touched_) links_[link].touched = false;
  filling_.clear();
  touched_.clear();
}

void FlowNetwork::prepare(LinkId id) {
  Link& link = links_[id];
  link.left = link.capacity;
  link.weight = 0;
  for (const Member& member : link.members) {
    const Flow& flow = flows_[member.flow];
    const double weight = flow.hops[member.hop].weight;
    if (flow.filling)
      link.weight += weight;
    else
      link.left -= weight * flow.rate;
  }
  link.left = std::max(link.left, 0.0);
  if (link.weight > 0) heap_.push_back({link.left / link.weight, id, true});
}

// Levels of hops only rise while others are fixed, so an entry that is out of date is put back with its present level.
void FlowNetwork::fill() {
  heap_.clear();
  filled_ += filling_.size();
  for (const FlowId id : filling_) {
    flows_[id].fixed = false;
    if (flows_[id].cap != no_cap) heap_.push_back({flows_[id].cap, id, false});
  }
  for (const LinkId link : touched_) prepare(link);
  std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    Level top = heap_.back();
    heap_.pop_back();
    if (!top.is_link) {
      if (!flows_[top.id].fixed) fix(top.id, top.level, -1);
      continue;
    }
    Link& link = links_[top.id];
    if (link.weight <= tolerance) continue;
    const double level = std::max(0.0, link.left / link.weight);
    if (level > top.level) {
      top.level = level;
      heap_.push_back(top);
      std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
      continue;
    }
    for (const Member& member : link.members)
      if (flows_[member.flow].filling && !flows_[member.flow].fixed) fix(member.flow, level, top.id);
  }
}

void FlowNetwork::fix(FlowId id, double rate, std::int64_t bottleneck) {
  Flow& flow = flows_[id];
  flow.fixed = true;
  flow.rate = rate;
  flow.bottleneck = bottleneck;
  for (const Hop& hop : flow.hops) {
    links_[hop.link].left -= hop.weight * rate;
    links_[hop.link].weight -= hop.weight;
  }
}

bool FlowNetwork::widen() {
  const std::size_t before = filling_.size();
  const std::size_t links = touched_.size();
  for (std::size_t i = 0; i < links; ++i) widen_at(touched_[i], rounds_ > patient_rounds);
  return filling_.size() != before;
}

// Adds flows of a touched hop whose certificate is no longer true, or that keep another one below its share.
bool FlowNetwork::widen_at(LinkId id, bool whole) {
  const Link& link = links_[id];
  const bool full = link.left <= tolerance * link.capacity;
  double fastest = 0, held = no_cap;  // held: the slowest flow whose bottleneck is here
  for (const Member& member : link.members) {
    const Flow& flow = flows_[member.flow];
    fastest = std::max(fastest, flow.rate);
    if (flow.filling && flow.bottleneck == id) held = std::min(held, flow.rate);
  }
  bool added = false;
  for (const Member& member : link.members) {
    const Flow& flow = flows_[member.flow];
    if (flow.filling) continue;
    const bool broken = flow.bottleneck == id && (!full || flow.rate < fastest * (1 - tolerance));
    const bool in_the_way = flow.rate > held * (1 + tolerance);
    if (!broken && !in_the_way && !(whole && full)) continue;
    join(member.flow);
    added = true;
  }
  return added;
}

}  // namespace waywiser::sim
