#include "waywiser/sim/simulated_meter.hpp"

#include <algorithm>

#include "waywiser/base/error.hpp"
#include "waywiser/measure/other_machine.hpp"
#include "waywiser/measure/pair_class.hpp"
#include "waywiser/measure/path_limit.hpp"
#include "waywiser/topology/pair_group.hpp"
#include "waywiser/topology/relation.hpp"
#include "waywiser/transport/transport.hpp"

namespace waywiser::sim {
namespace {

constexpr Bytes most_within = Bytes{1} << 40, most_to_another = Bytes{256} << 20;

const NodeModel* model_of(const NodeModel& node, const ClusterSpec& cluster, int number) {
  const int type = cluster.types.empty() ? 0 : cluster.types.at(static_cast<std::size_t>(number));
  return type == 0 ? &node : cluster.others.at(static_cast<std::size_t>(type - 1));
}

// The number of the machine itself: the first node of type 0.
int number_here(const ClusterSpec& cluster) {
  const auto first = std::ranges::find(cluster.types, 0);
  return first == cluster.types.end() ? 0 : static_cast<int>(first - cluster.types.begin());
}

NetworkSide side_of(const NodeModel& node) {
  const Topology& topology = node.topology();
  const std::vector<std::string> gpus = topology.ids("gpu");
  NetworkSide side{topology.name, fingerprint(topology), static_cast<int>(gpus.size()), {}};
  for (const std::string& nic : node.nics(gpus.empty() ? "host0" : gpus.front(), true)) {
    const std::string& name = topology.at(nic).name;
    side.devices.push_back(node.rdma(nic) ? NetworkDevice{name + ":1", true, {"InfiniBand"}}
                                          : NetworkDevice{name, false, {"Ethernet"}});
  }
  return side;
}

// The first GPU of each distance to its nearest NIC.
std::vector<int> gpus_by_distance(const NodeModel& node) {
  std::vector<int> chosen;
  std::vector<std::string> known;
  for (const std::string& gpu : node.topology().ids("gpu")) {
    const std::vector<std::string> nics = node.nics(gpu, true);
    const std::string far = nics.empty() ? "" : relation(node.graph(), gpu, nics.front());
    if (std::ranges::count(known, far) != 0) continue;
    known.push_back(far);
    chosen.push_back(parse_place(gpu).index);
  }
  return chosen;
}

bool wanted(Place place, const CampaignOptions& options) {
  return options.places.empty() || std::ranges::count(options.places, place) != 0;
}

}  // namespace

std::map<NodeType, int> reached(const NodeModel& node, const ClusterSpec& cluster) {
  std::map<NodeType, int> nodes;
  for (int i = 0; i < cluster.network.nodes; ++i)
    if (i != number_here(cluster)) nodes[node_type(fingerprint(model_of(node, cluster, i)->topology()))] = i;
  return nodes;
}

SimulatedMeter::SimulatedMeter(const NodeModel& node, std::vector<PairClass> classes, ClusterSpec cluster)
    : node_(node), cluster_(std::move(cluster)), classes_(std::move(classes)) {
  nodes_ = reached(node_, cluster_);
}

Spot SimulatedMeter::spot(const Path& path, Place place) const {
  if (!place.other_machine()) return {&cluster_of(path) == &cluster_ ? number_here(cluster_) : 0, text(place)};
  const auto found = nodes_.find(place.node);
  if (found == nodes_.end()) throw Error(ErrorKind::unavailable, "no node of that type is simulated");
  return {found->second, text(on_node(this_node, place))};
}

// A path within the machine needs no other nodes.
const ClusterSpec& SimulatedMeter::cluster_of(const Path& path) const {
  return path.source.other_machine() || path.destination.other_machine() ? cluster_ : alone_;
}

std::optional<std::string> SimulatedMeter::why_unavailable(const Path& path) {
  const World world(node_, cluster_of(path));
  return sim::why_unavailable({world, path, spot(path, path.source), spot(path, path.destination), 0});
}

// Half of the smaller memory, as far as the machine file says.
Bytes SimulatedMeter::largest(const Path& path) const {
  Bytes found = &cluster_of(path) == &cluster_ ? most_to_another : most_within;
  for (const Place place : {path.source, path.destination}) {
    const Spot at = spot(path, place);
    const Bytes memory = model_of(node_, cluster_of(path), at.node)->topology().at(at.device).memory_bytes;
    if (memory != 0) found = std::min(found, memory / 2);
  }
  return found;
}

Bytes SimulatedMeter::smallest(const Path& path) const {
  const Mechanism* mechanism = find_mechanism(path.mechanism);
  return mechanism == nullptr || mechanism->least_bytes == nullptr ? 0 : mechanism->least_bytes(path);
}

int SimulatedMeter::pairs_at_once(const Path& path) const {
  const PairClass* all = class_of(classes_, path);
  return all == nullptr ? 1 : static_cast<int>(all->members.size());
}

Limit SimulatedMeter::limit(const Path& path, Operation) const {
  return &cluster_of(path) == &cluster_ ? Limit{} : path_limit(node_.topology(), path);
}

std::optional<std::string> SimulatedMeter::verify(const Path&, Operation, Bytes) { return std::nullopt; }

const Timed& SimulatedMeter::timed(const Path& path, Operation operation, Bytes bytes) {
  const auto key = std::tuple(pair_text(path) + " " + label(path), operation, bytes);
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  TimedTrial trial{path, spot(path, path.source), spot(path, path.destination), operation, bytes, {}};
  if (const PairClass* all = class_of(classes_, path); all != nullptr && operation == Operation::loaded)
    for (const auto& [source, destination] : all->members)
      trial.pairs.emplace_back(spot(path, source), spot(path, destination));
  return known_.emplace(key, simulate(node_, cluster_of(path), trial)).first->second;
}

Sample SimulatedMeter::take(const Path& path, Operation operation, Bytes bytes, int repetitions) {
  const Timed& found = timed(path, operation, bytes);
  clock_ += found.seconds * repetitions;
  return {found.seconds, found.cpu_seconds, {}};
}

Seconds SimulatedMeter::first_use(const Path& path) { return timed(path, Operation::latency, 8).seconds; }

std::vector<Subject> simulated_subjects(const Topology& topology, const CampaignOptions& options) {
  std::vector<Subject> all;
  for (const PairGroup& group : pair_groups(topology, SamePlace::included)) {
    PairClass members{group.name, {}, 1};
    for (const auto& [a, b] : group.members)
      if (wanted(parse_place(a), options) && wanted(parse_place(b), options))
        members.members.emplace_back(parse_place(a), parse_place(b));
    const std::size_t classes = members.members.empty() ? 0 : options.all_pairs ? members.members.size() : 1;
    for (std::size_t i = 0; i < classes; ++i)
      for (const int processes : options.processes) {
        PairClass one = members;
        one.processes = processes;
        if (options.all_pairs)
          one = {group.name + " " + group.members[i].first + ">" + group.members[i].second,
                 {members.members[i]},
                 processes};
        const auto& [source, destination] = one.members.front();
        all.push_back({one, families(topology, source, destination, processes)});
      }
  }
  return all;
}

std::vector<Subject> simulated_network_subjects(const NodeModel& here, const NodeModel& there,
                                                const CampaignOptions& options) {
  const NetworkSide near = side_of(here), far = side_of(there);
  const auto rdma = [](const NetworkSide& side) { return std::ranges::any_of(side.devices, &NetworkDevice::rdma); };
  const std::string transports = rdma(near) && rdma(far) ? "rc" : "network-tcp";
  std::vector<Subject> subjects =
      network_subjects(near, far, options, {gpus_by_distance(here), gpus_by_distance(there)});
  for (Subject& subject : subjects)
    std::erase_if(subject.families, [&](const Family& family) {
      return family.base.mechanism == "tls" || family.base.parameter("transports") != transports;
    });
  return subjects;
}

Profile measure_simulated(const NodeModel& node, const ClusterSpec& cluster, const CampaignOptions& options,
                          const Profile* previous, const ProgressCallback& progress) {
  Topology known = node.topology();
  for (const Device& device : node.topology().devices)
    if (device.kind == "gpu")
      set_multiprocessors(known, parse_place(device.id), static_cast<int>(node.costs()["sm.multiprocessors"]));
  std::vector<Subject> subjects = simulated_subjects(known, options);
  const std::map<NodeType, int> others = reached(node, cluster);
  for (const auto& [type, number] : others)
    std::ranges::move(simulated_network_subjects(node, *model_of(node, cluster, number), options),
                      std::back_inserter(subjects));
  if (subjects.empty()) throw Error(ErrorKind::invalid_input, "no pair of places of this machine was asked for");
  std::vector<PairClass> classes;
  for (const Subject& subject : subjects) classes.push_back(subject.pair_class);
  SimulatedMeter meter(node, std::move(classes), cluster);
  const std::string print = fingerprint(node.topology());
  const bool same = previous != nullptr && previous->fingerprint == print && previous->simulated;
  // Without the profile so far: what took seconds is simulated again, and writing it would take as long.
  const auto report = [&](const Progress& told) {
    return progress({told.done, told.total, told.seconds_left, told.label, std::nullopt});
  };
  Profile profile = run_campaign(subjects, meter, options, same ? previous : nullptr,
                                 progress ? ProgressCallback(report) : ProgressCallback());
  profile.fingerprint = print;
  profile.machine = node.topology().name;
  profile.backend = "simulator";
  profile.state["resumed"] = same;
  Assumptions assumed = node.assumed();
  for (const auto& [type, number] : others) assumed.merge(model_of(node, cluster, number)->assumed());
  profile.state["assumed"] = to_json(assumed);
  if (same) profile.other_nodes = previous->other_nodes;
  for (const auto& [type, number] : others) {
    const Topology& there = model_of(node, cluster, number)->topology();
    enter_other_node(profile, {fingerprint(there), there.name});
  }
  return profile;
}

}  // namespace waywiser::sim
