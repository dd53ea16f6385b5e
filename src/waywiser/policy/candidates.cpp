#include "waywiser/policy/candidates.hpp"

#include <algorithm>

#include "waywiser/transport/transport.hpp"

namespace waywiser {
namespace {

bool serves(const Series& series, const PairClass& pair_class, Operation operation, std::string_view rail) {
  const Path& path = series.path;
  if (!rail.empty() && (!path.has("device") || path.parameter("device") != rail)) return false;
  return series.operation == operation && series.path.processes == pair_class.processes &&
         series.path.source == pair_class.members.front().first &&
         series.path.destination == pair_class.members.front().second && !series.points.empty();
}

std::ptrdiff_t rank(const Series* series, const MechanismOrder& order) {
  return std::find(order.begin(), order.end(), series->path.mechanism) - order.begin();
}

}  // namespace

std::vector<std::string> single_rails(const Profile& profile, const PairClass& pair_class) {
  const auto& [source, destination] = pair_class.members.front();
  std::vector<std::string> rails;
  if (!source.other_machine() && !destination.other_machine()) return rails;
  for (const Series& series : profile.series) {
    const Path& path = series.path;
    if (path.source != source || path.destination != destination || !path.has("device")) continue;
    const std::string rail(path.parameter("device"));
    if (rail.find('+') == std::string::npos && std::ranges::count(rails, rail) == 0) rails.push_back(rail);
  }
  return rails;
}

MechanismOrder mechanism_order() {
  MechanismOrder order;
  for (const Mechanism& mechanism : mechanisms()) order.emplace_back(mechanism.name);
  return order;
}

Candidates candidates(const Profile& profile, const PairClass& pair_class, Operation operation,
                      const MechanismOrder& order, std::string_view rail, bool encrypted) {
  Candidates found;
  found.measured_as = operation;
  for (const Series& series : profile.series)
    if (serves(series, pair_class, operation, rail) && encrypts(series.path) == encrypted)
      found.series.push_back(&series);
  const bool not_measured = pair_class.members.size() == 1 || pair_class.processes == 2;  // two: older profiles
  if (found.series.empty() && operation == Operation::loaded && not_measured)
    return candidates(profile, pair_class, Operation::streaming, order, rail, encrypted);
  std::stable_sort(found.series.begin(), found.series.end(),
                   [&](const Series* a, const Series* b) { return rank(a, order) < rank(b, order); });
  for (const Series* series : found.series) found.costs.emplace_back(series->points);
  return found;
}

}  // namespace waywiser
