#include "waywiser/measure/machine.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <thread>

#include "waywiser/base/error.hpp"
#include "waywiser/measure/loaded_meter.hpp"
#include "waywiser/measure/machine_meter.hpp"
#include "waywiser/measure/one_process_meter.hpp"
#include "waywiser/measure/other_machine.hpp"
#include "waywiser/measure/path_limit.hpp"
#include "waywiser/measure/platform_choice.hpp"
#include "waywiser/measure/this_side.hpp"
#include "waywiser/topology/pair_group.hpp"
#include "waywiser/topology/virtual_machine.hpp"

namespace waywiser {
namespace {

PlatformChoice choice_of(const Topology& topology, const std::string& backend) {
  PlatformChoice choice{backend, {}};
  if (backend == "virtual_gpu") choice.machine = virtual_machine(topology);
  return choice;
}

bool served(Place place, const Platform& platform, const CampaignOptions& options) {
  if (place.is_gpu() && place.index >= platform.gpu_count()) return false;
  return options.places.empty() || std::count(options.places.begin(), options.places.end(), place) != 0;
}

// The groups of the topology, as far as the platform has the places and the user asked for them.
std::vector<PairClass> pair_classes(const Topology& topology, const Platform& platform,
                                    const CampaignOptions& options) {
  std::vector<PairClass> classes;
  for (const PairGroup& group : pair_groups(topology, SamePlace::included)) {
    PairClass found{group.name, {}, 1};
    for (const auto& [a, b] : group.members) {
      const Place source = parse_place(a), destination = parse_place(b);
      if (!served(source, platform, options) || !served(destination, platform, options)) continue;
      found.members.emplace_back(source, destination);
      if (!options.all_pairs) continue;
      classes.push_back({group.name + " " + a + ">" + b, {{source, destination}}, 1});
    }
    if (!options.all_pairs && !found.members.empty()) classes.push_back(std::move(found));
  }
  return classes;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

}  // namespace

std::unique_ptr<Platform> open_platform(const Topology& topology, const std::string& backend) {
  const std::string automatic = why_no_cuda() ? "host" : "cuda";
  return open_platform(choice_of(topology, backend == "auto" ? automatic : backend));
}

std::vector<Subject> subjects(const Topology& topology, const Platform& platform, const CampaignOptions& options) {
  Topology known = topology;
  for (int index = 0; index < platform.gpu_count(); ++index)
    set_multiprocessors(known, gpu(index), platform.multiprocessors(index));
  std::vector<Subject> all;
  for (PairClass& pair_class : pair_classes(topology, platform, options))
    for (const int processes : options.processes) {
      pair_class.processes = processes;
      const auto& [source, destination] = pair_class.members.front();
      all.push_back({pair_class, families(known, source, destination, processes)});
    }
  return all;
}

std::unique_ptr<Meter> machine_meter(Platform& platform, const Topology& topology, std::vector<PairClass> classes,
                                     const std::string& peer_program, const TwoProcessMeter::Connect& connect) {
  const PlatformChoice choice = choice_of(topology, std::string(platform.backend()));
  auto within_one = std::make_unique<OneProcessMeter>(platform, topology, classes);
  std::unique_ptr<Meter> between_two;
  if (!peer_program.empty()) {
    const auto limit = [&topology](const Path& path, Operation) { return path_limit(topology, path); };
    const auto make = [&platform, choice, peer_program, limit] {
      return std::make_unique<TwoProcessMeter>(platform, choice, peer_program, limit);
    };
    between_two = std::make_unique<LoadedMeter>(platform, make, std::move(classes),
                                                most_pairs_at_once(std::thread::hardware_concurrency()));
  }
  auto meter = std::make_unique<MachineMeter>(std::move(within_one), std::move(between_two),
                                              peer_program.empty() ? "no peer program was given" : "");
  if (connect) meter->set_between_machines(std::make_unique<TwoProcessMeter>(platform, choice, connect));
  return meter;
}

Profile measure(const Topology& topology, const CampaignOptions& options, const Profile* previous,
                const ProgressCallback& progress, const TwoProcessMeter::Connect& connect) {
  const std::unique_ptr<Platform> platform = open_platform(topology, options.backend);
  std::vector<Subject> wanted = subjects(topology, *platform, options);
  std::optional<NetworkSide> there;
  if (connect) {
    there = TwoProcessMeter(*platform, choice_of(topology, std::string(platform->backend())), connect).other_side();
    std::ranges::move(network_subjects(this_side(*platform, topology), *there, options), std::back_inserter(wanted));
  }
  std::optional<Profile> up_to_date;
  const OtherNode other = there ? OtherNode{there->fingerprint, there->machine} : OtherNode{};
  if (previous != nullptr && there) previous = &up_to_date.emplace(without_older_of(*previous, other));
  if (wanted.empty()) throw Error(ErrorKind::invalid_input, "no pair of places of this machine was asked for");
  std::vector<PairClass> classes;
  for (const Subject& subject : wanted) classes.push_back(subject.pair_class);
  const std::unique_ptr<Meter> meter = machine_meter(*platform, topology, classes, options.peer_program, connect);
  const std::string print = fingerprint(topology);
  const bool same = previous != nullptr && previous->fingerprint == print && previous->backend == platform->backend();
  const auto complete = [&](Profile& profile) {
    profile.fingerprint = print;
    profile.machine = topology.name;
    profile.backend = platform->backend();
    profile.created = utc_now();
    profile.state["platform"] = Json::parse(platform->state());
    profile.state["resumed"] = same;
    if (same) profile.other_nodes = previous->other_nodes;
    if (there) enter_other_node(profile, other);
    if (there)
      profile.state["other"] = to_json(*there);
    else if (same && previous->state.contains("other"))
      profile.state["other"] = previous->state["other"];
  };
  const auto report = [&](const Progress& plain) {
    if (!plain.so_far) return progress(plain);
    Progress told = plain;
    complete(*told.so_far);
    return progress(told);
  };
  Profile profile = run_campaign(wanted, *meter, options, same ? previous : nullptr,
                                 progress ? ProgressCallback(report) : ProgressCallback());
  complete(profile);
  return profile;
}

}  // namespace waywiser
