#include "waywiser/measure/other_machine.hpp"

#include <algorithm>

#include "waywiser/path/network_families.hpp"

namespace waywiser {
namespace {

// The first of a kind has no number: it stands for all, or for most.
std::string kind_text(Place place) {
  return (place.is_gpu() ? "gpu" : "host") + (place.index == 0 ? "" : std::to_string(place.index));
}

}  // namespace

std::vector<Subject> network_subjects(const NetworkSide& here, const NetworkSide& there, const CampaignOptions& options,
                                      const GpusAtEnds& gpus) {
  const NodeType type = node_type(there.fingerprint);
  std::vector<Place> sources{host(0)}, destinations{on_node(type, host(0))};
  for (const int index : gpus.here)
    if (index < here.gpus) sources.push_back(gpu(index));
  for (const int index : gpus.there)
    if (index < there.gpus) destinations.push_back(on_node(type, gpu(index)));
  std::vector<Subject> subjects;
  for (const Place source : sources)
    for (const Place destination : destinations) {
      if (!options.places.empty() && std::ranges::count(options.places, source) == 0) continue;
      const std::string name = kind_text(source) + ">" + there.machine + ":" + kind_text(destination);
      subjects.push_back({{name, {{source, destination}}, 2}, network_families(here, there, source, destination)});
    }
  return subjects;
}

Profile without_other_machines(Profile profile, const std::function<bool(NodeType)>& dropped) {
  const auto is_dropped = [&](Place source, Place destination) {
    const Place there = source.other_machine() ? source : destination;
    return there.other_machine() && dropped(there.node);
  };
  const auto on_path = [&](const auto& entry) { return is_dropped(entry.path.source, entry.path.destination); };
  std::erase_if(profile.classes, [&](const PairClass& entry) {
    return is_dropped(entry.members.front().first, entry.members.front().second);
  });
  std::erase_if(profile.series, on_path);
  std::erase_if(profile.searched, on_path);
  std::erase_if(profile.first_use, on_path);
  std::erase_if(profile.unavailable, on_path);
  std::erase_if(profile.rejected, on_path);
  std::erase_if(profile.other_nodes, [&](const OtherNode& node) { return dropped(node_type(node.fingerprint)); });
  return profile;
}

Profile without_older_of(Profile profile, const OtherNode& node) {
  std::vector<NodeType> older;
  for (const OtherNode& known : profile.other_nodes)
    if (known.machine == node.machine && known.fingerprint != node.fingerprint)
      older.push_back(node_type(known.fingerprint));
  return without_other_machines(std::move(profile),
                                [&](NodeType type) { return std::ranges::count(older, type) != 0; });
}

NodeType measured_last(const Profile& profile) {
  const auto other = profile.state.find("other");
  if (other == profile.state.end() || !other->is_object()) return some_other_node;
  return node_type(other->value("fingerprint", ""));
}

void enter_other_node(Profile& profile, const OtherNode& node) {
  const auto known = std::ranges::find(profile.other_nodes, node.fingerprint, &OtherNode::fingerprint);
  if (known == profile.other_nodes.end()) profile.other_nodes.push_back(node);
}

}  // namespace waywiser
