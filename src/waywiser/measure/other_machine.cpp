#include "waywiser/measure/other_machine.hpp"

#include <algorithm>

#include "waywiser/path/network_families.hpp"

namespace waywiser {
namespace {

bool reaches_other_machine(const Path& path) { return path.source.other_machine || path.destination.other_machine; }

}  // namespace

std::vector<Subject> network_subjects(const NetworkSide& here, const NetworkSide& there,
                                      const CampaignOptions& options) {
  std::vector<Place> sources{host(0)}, destinations{seen_from_other(host(0))};
  if (here.gpus > 0) sources.push_back(gpu(0));
  if (there.gpus > 0) destinations.push_back(seen_from_other(gpu(0)));
  std::vector<Subject> subjects;
  for (const Place source : sources)
    for (const Place destination : destinations) {
      if (!options.places.empty() && std::ranges::count(options.places, source) == 0) continue;
      const std::string name =
          std::string(source.is_gpu() ? "gpu" : "host") + ">other:" + (destination.is_gpu() ? "gpu" : "host");
      subjects.push_back({{name, {{source, destination}}, 2}, network_families(here, there, source, destination)});
    }
  return subjects;
}

bool reaches_other_machine(const PairClass& pair_class) {
  const auto& [source, destination] = pair_class.members.front();
  return source.other_machine || destination.other_machine;
}

Profile without_other_machine(Profile profile) {
  const auto there = [](const auto& entry) { return reaches_other_machine(entry.path); };
  std::erase_if(profile.classes, [](const PairClass& entry) { return reaches_other_machine(entry); });
  std::erase_if(profile.series, there);
  std::erase_if(profile.searched, there);
  std::erase_if(profile.first_use, there);
  std::erase_if(profile.unavailable, there);
  std::erase_if(profile.rejected, there);
  profile.state.erase("other");
  return profile;
}

std::string other_fingerprint(const Profile& profile) {
  const auto other = profile.state.find("other");
  if (other == profile.state.end() || !other->is_object()) return {};
  return other->value("fingerprint", "");
}

}  // namespace waywiser
