#include "waywiser/comm/network/network_paths.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "waywiser/path/network_families.hpp"
#include "waywiser/transport/split/split.hpp"

namespace waywiser {
namespace {

// Whichever rail the row is for: a group uses all of them.
bool leads_to_other(const PlanRow& row) {
  if (!row.key.is_message() || row.key.encrypted) return false;
  const auto& [source, destination] = row.key.pairs.front();
  return !source.other_machine() && destination.other_machine() && row.key.processes == 2 && row.key.rail.empty();
}

bool between_hosts(const Path& path) { return !path.source.is_gpu() && !path.destination.is_gpu(); }

std::string_view device_of(const Path& path) { return path.has("device") ? path.parameter("device") : ""; }

// UCX of a group is restricted to the plan's choice between hosts: if that is one path, UCX uses it by itself.
bool one_path_between_hosts(const Plan& plan) {
  std::set<std::pair<std::string, std::string>> selections;
  for (const PlanRow& row : plan.rows) {
    if (!leads_to_other(row)) continue;
    const Path path = row.path();
    if (!between_hosts(path)) continue;
    if (path.has("share") || !path.has("transports")) return false;
    selections.emplace(path.parameter("transports"), device_of(path));
  }
  return selections.size() <= 1;
}

Place first_like(Place place) { return place.is_gpu() ? gpu(0) : host(0); }

}  // namespace

std::vector<UcxSelection> NetworkPath::selections(bool sends, bool turned) const {
  Path mine = path;
  if (!sends) {
    mine.source = seen_from_other(path.destination);
    mine.destination = seen_from_other(path.source);
  }
  // Of two names, the first is the device at this end.
  if (path.has("device") && sends == turned) mine.parameters["device"] = turned_device(path.parameter("device"));
  if (mine.mechanism == "ucx_staged") {
    mine.source = host(0);
    mine.destination = seen_from_other(host(0));
  }
  return ucx_rails(mine);
}

bool NetworkPath::reads_gpus() const { return path.mechanism == "ucx" && !between_hosts(path); }

NetworkPaths::NetworkPaths(std::shared_ptr<const Chooser> chooser) : chooser_(std::move(chooser)) {
  if (!chooser_) return;
  const bool hosts_need_none = one_path_between_hosts(chooser_->plan());
  std::map<std::string, std::size_t> known;
  for (const PlanRow& row : chooser_->plan().rows) {
    if (!leads_to_other(row)) continue;
    const Path path = row.path();
    if (std::ranges::count(nodes_, path.destination.node) == 0) nodes_.push_back(path.destination.node);
    if (path.mechanism != "ucx" && path.mechanism != "ucx_staged") continue;
    if (between_hosts(path) && hosts_need_none) continue;
    const std::size_t rails = ucx_rails(path).size();
    if (rails == 0) continue;
    const auto [found, fresh] = known.insert({pair_text(path) + label(path), ways_.size()});
    if (fresh) ways_.push_back({path, rails == 1 ? std::vector<int>{100} : split_percents(path, rails)});
    way_of_[&row] = found->second;
  }
}

bool NetworkPaths::tells_nodes_apart() const noexcept {
  if (ways_.empty()) return false;
  const NodeType own = node_type(chooser_->plan().fingerprint);
  return std::ranges::any_of(nodes_, [&](NodeType node) { return node != own && node != some_other_node; });
}

PlanEnds NetworkPaths::ends(NodeType mine, NodeType theirs, bool lower) const {
  if (nodes_.empty()) return {};
  const NodeType own = node_type(chooser_->plan().fingerprint);
  const bool here = mine != theirs && (mine == own || theirs == own) ? mine == own : lower;
  for (const NodeType node : here ? std::array{theirs, mine} : std::array{mine, theirs})
    if (std::ranges::count(nodes_, node) != 0) return {node, here};
  return {nodes_.front(), here};
}

const PlanRow* NetworkPaths::row_for(Place here, Place there, NodeType node, Bytes bytes) const {
  for (const Place from : {here, first_like(here)})
    for (const Place to : {there, first_like(there)})
      if (const PlanRow* row = chooser_->choose(from, on_node(node, to), 2, Operation::latency, bytes)) return row;
  return nullptr;
}

// The plan has only one direction. Between two GPUs each machine's own GPU selects the row, since network cards are
// close to GPUs; between a GPU and a host it matters whether the sender's memory is the GPU's.
std::optional<std::size_t> NetworkPaths::find(Place source, Place destination, Bytes bytes, const PlanEnds& ends,
                                              bool sends) const {
  if (ways_.empty()) return {};
  if (source.kind == destination.kind && ends.here != sends) std::swap(source, destination);
  const auto found = way_of_.find(row_for(source, destination, ends.there, bytes));
  return found == way_of_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<PlanEnds> ends_of(const NetworkPaths& paths, const std::vector<Introduction>& ranks, std::uint32_t me) {
  std::vector<PlanEnds> ends;
  for (const Introduction& other : ranks)
    ends.push_back(paths.ends(node_type(ranks[me].node), node_type(other.node), me < other.rank));
  return ends;
}

}  // namespace waywiser
