#include "waywiser/comm/network_ways.hpp"

#include <algorithm>
#include <set>

#include "waywiser/path/network_families.hpp"
#include "waywiser/transport/split/split.hpp"

namespace waywiser {
namespace {

// Whatever rail a rank may be bound to: a group takes them all.
bool leads_to_other(const PlanRow& row) {
  const Path& path = row.path;
  return !path.source.other_machine() && path.destination.other_machine() && row.processes == 2 && row.rail.empty();
}

// The type of node to which a group takes the plan's roads.
NodeType first_other(const Plan& plan) {
  const auto found = std::ranges::find_if(plan.rows, leads_to_other);
  return found == plan.rows.end() ? some_other_node : found->path.destination.node;
}

bool between_hosts(const Path& path) { return !path.source.is_gpu() && !path.destination.is_gpu(); }

std::string_view device_of(const Path& path) { return path.has("device") ? path.parameter("device") : ""; }

// UCX of a group is kept to what the plan has between hosts: where that is one road, it takes it by itself.
bool one_road_between_hosts(const Plan& plan) {
  std::set<std::pair<std::string_view, std::string_view>> roads;
  for (const PlanRow& row : plan.rows) {
    if (!leads_to_other(row) || !between_hosts(row.path)) continue;
    if (row.path.has("share") || !row.path.has("transports")) return false;
    roads.insert({row.path.parameter("transports"), device_of(row.path)});
  }
  return roads.size() <= 1;
}

Place like(Place place) { return place.is_gpu() ? gpu(0) : host(0); }

}  // namespace

std::vector<UcxRoad> NetworkWay::roads(bool sends, bool turned) const {
  Path mine = path;
  if (!sends) {
    mine.source = seen_from_other(path.destination);
    mine.destination = seen_from_other(path.source);
  }
  // The first of two names is the device at this end.
  if (path.has("device") && sends == turned) mine.parameters["device"] = turned_device(path.parameter("device"));
  if (mine.mechanism == "ucx_staged") {
    mine.source = host(0);
    mine.destination = seen_from_other(host(0));
  }
  return ucx_rails(mine);
}

bool NetworkWay::reads_gpus() const { return path.mechanism == "ucx" && !between_hosts(path); }

NetworkWays::NetworkWays(std::shared_ptr<const Chooser> chooser) : chooser_(std::move(chooser)) {
  if (!chooser_) return;
  const bool hosts_need_none = one_road_between_hosts(chooser_->plan());
  std::map<std::string, std::size_t> known;
  for (const PlanRow& row : chooser_->plan().rows) {
    const Path& path = row.path;
    if (!leads_to_other(row) || path.destination.node != first_other(chooser_->plan())) continue;
    if (path.mechanism != "ucx" && path.mechanism != "ucx_staged") continue;
    if (between_hosts(path) && hosts_need_none) continue;
    const std::size_t rails = ucx_rails(path).size();
    if (rails == 0) continue;
    const auto [found, fresh] = known.insert({pair_text(path) + label(path), ways_.size()});
    if (fresh) ways_.push_back({path, rails == 1 ? std::vector<int>{100} : split_percents(path, rails)});
    way_of_[&row] = found->second;
  }
}

std::optional<std::size_t> NetworkWays::find(Place source, Place destination, Bytes bytes) const {
  if (ways_.empty()) return {};
  const PlanRow* row = chooser_->choose(like(source), seen_from_other(like(destination)), 2, Operation::latency, bytes);
  const auto found = way_of_.find(row);
  return found == way_of_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace waywiser
