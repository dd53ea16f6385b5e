#include "waywiser/sim/simulated_meter.hpp"

#include <algorithm>

#include "waywiser/base/error.hpp"
#include "waywiser/measure/pair_class.hpp"
#include "waywiser/measure/path_limit.hpp"
#include "waywiser/topology/pair_group.hpp"

namespace waywiser::sim {
namespace {

constexpr Bytes most_bytes = Bytes{1} << 40;

Spot spot(Place place) { return {0, text(place)}; }

bool wanted(Place place, const CampaignOptions& options) {
  return options.places.empty() || std::ranges::count(options.places, place) != 0;
}

}  // namespace

SimulatedMeter::SimulatedMeter(const NodeModel& node, std::vector<PairClass> classes)
    : node_(node), classes_(std::move(classes)) {}

std::optional<std::string> SimulatedMeter::why_unavailable(const Path& path) {
  const World world(node_, {});
  return sim::why_unavailable({world, path, spot(path.source), spot(path.destination), 0});
}

// Half of the smaller memory, as far as the machine file says.
Bytes SimulatedMeter::largest(const Path& path) const {
  Bytes found = most_bytes;
  for (const Place place : {path.source, path.destination}) {
    const Bytes memory = node_.topology().at(text(place)).memory_bytes;
    if (memory != 0) found = std::min(found, memory / 2);
  }
  return found;
}

int SimulatedMeter::pairs_at_once(const Path& path) const {
  const PairClass* all = class_of(classes_, path);
  return all == nullptr ? 1 : static_cast<int>(all->members.size());
}

Limit SimulatedMeter::limit(const Path& path, Operation) const { return path_limit(node_.topology(), path); }

std::optional<std::string> SimulatedMeter::verify(const Path&, Operation, Bytes) { return std::nullopt; }

const Timed& SimulatedMeter::timed(const Path& path, Operation operation, Bytes bytes) {
  const auto key = std::tuple(pair_text(path) + " " + label(path), operation, bytes);
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  Trial trial{path, spot(path.source), spot(path.destination), operation, bytes, {}};
  if (const PairClass* all = class_of(classes_, path); all != nullptr && operation == Operation::loaded)
    for (const auto& [source, destination] : all->members) trial.pairs.emplace_back(spot(source), spot(destination));
  return known_.emplace(key, simulate(node_, {}, trial)).first->second;
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

Profile measure_simulated(const NodeModel& node, const CampaignOptions& options, const Profile* previous,
                          const ProgressCallback& progress) {
  const std::vector<Subject> subjects = simulated_subjects(node.topology(), options);
  if (subjects.empty()) throw Error(ErrorKind::invalid_input, "no pair of places of this machine was asked for");
  std::vector<PairClass> classes;
  for (const Subject& subject : subjects) classes.push_back(subject.pair_class);
  SimulatedMeter meter(node, std::move(classes));
  const std::string print = fingerprint(node.topology());
  const bool same = previous != nullptr && previous->fingerprint == print && previous->simulated;
  Profile profile = run_campaign(subjects, meter, options, same ? previous : nullptr, progress);
  profile.fingerprint = print;
  profile.machine = node.topology().name;
  profile.backend = "simulator";
  profile.state["resumed"] = same;
  return profile;
}

}  // namespace waywiser::sim
