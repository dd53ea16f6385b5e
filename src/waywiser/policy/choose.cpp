#include "waywiser/policy/choose.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "waywiser/base/error.hpp"
#include "waywiser/policy/choose_collectives.hpp"
#include "waywiser/policy/ranking.hpp"
#include "waywiser/transport/transport.hpp"

namespace waywiser {
namespace {

bool fails_beyond(const Profile& profile, const Series& series) {
  return std::any_of(profile.rejected.begin(), profile.rejected.end(), [&](const Rejected& entry) {
    return entry.path == series.path && entry.operation == series.operation && entry.bytes > series.points.back().bytes;
  });
}

// The middle of the range on a logarithmic axis, within the measured sizes.
double middle_of(const Segment& segment, const Cost& cost) {
  const double from = std::max<double>(1, static_cast<double>(segment.from));
  const double middle = std::sqrt(from * std::max(from, static_cast<double>(segment.to)));
  return std::clamp(middle, static_cast<double>(cost.points().front().bytes),
                    static_cast<double>(cost.points().back().bytes));
}

// Whether the owner of this place runs the path alone; between GPUs its GPU does all of the work.
bool is_of_owner(const Path& path, Place owner) {
  return path.source.is_gpu() && path.destination.is_gpu() ? runs_alone_on(path, owner) : !is_two_sided(path);
}

// The others that were measured in the segment, the fastest at `bytes` first; of those that were measured elsewhere in
// it, at the size next to `bytes`.
std::vector<std::size_t> rivals(const Candidates& all, const Segment& segment, double bytes) {
  std::vector<std::tuple<double, Seconds, std::size_t>> found;  // distance from `bytes`, time, number
  for (std::size_t i = 0; i < all.costs.size(); ++i) {
    if (i == segment.choice) continue;
    const std::span<const Point> points = all.costs[i].points();
    const double at =
        std::clamp(bytes, static_cast<double>(points.front().bytes), static_cast<double>(points.back().bytes));
    if (at < static_cast<double>(segment.from) || at > static_cast<double>(segment.to)) continue;
    found.emplace_back(std::abs(std::log2(at + 1) - std::log2(bytes + 1)), all.costs[i].seconds(at), i);
  }
  std::ranges::sort(found);
  std::vector<std::size_t> numbers;
  for (const auto& [distance, seconds, number] : found) numbers.push_back(number);
  return numbers;
}

std::string number(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string reason(const Candidates& all, const Segment& segment, std::optional<std::size_t> next, double middle) {
  const std::string size = format_bytes(static_cast<Bytes>(middle));
  const Cost& chosen = all.costs[segment.choice];
  if (!next) return "the only path at " + size;
  const std::string other = label(all.series[*next]->path);
  const double ratio = all.costs[*next].seconds(middle) / chosen.seconds(middle);
  if (overlap(chosen.interval(middle), all.costs[*next].interval(middle)))
    return "equal to " + other + " at " + size + " within the confidence intervals" +
           (segment.choice < *next ? ": the earlier mechanism is taken" : "");
  if (ratio < 1)
    return number("within %.1f %% of ", (1 / ratio - 1) * 100) + other + " at " + size + ": not worth a switch";
  return "fastest: " + other + number(" takes %.2f times as long at ", ratio) + size;
}

// How `loaded` was measured, if not with all pairs of the class between equally many processes.
std::string how_loaded(const PairClass& pair_class, const Candidates& all, const Series& chosen) {
  const std::size_t pairs = pair_class.members.size();
  if (all.measured_as != Operation::loaded)
    return std::string(pairs == 1 ? "; one pair only" : "; not measured between two processes") + ": as " +
           std::string(name(all.measured_as));
  const auto at_once = static_cast<std::size_t>(chosen.pairs);
  if (at_once == 0 || at_once >= pairs) return {};
  return "; " + std::to_string(at_once) + " of " + std::to_string(pairs) + " pairs at once";
}

// The choice, its runner-up at `middle`, and the fastest way of each owner that these two lack.
std::vector<RankedWay> ranked_ways(const PlanKey& key, const Candidates& all, const Segment& segment,
                                   std::optional<std::size_t> next, double middle) {
  const Cost& chosen = all.costs[segment.choice];
  std::vector<RankedWay> ways;
  const auto add = [&](std::size_t i) {
    const Path& path = all.series[i]->path;
    const bool both = chosen.known(middle) && all.costs[i].known(middle);
    ways.push_back(
        {{path.mechanism, path.parameters}, both ? all.costs[i].seconds(middle) / chosen.seconds(middle) : 0});
  };
  std::vector<std::size_t> listed{segment.choice};
  if (next) listed.push_back(*next);
  const auto& [source, destination] = key.pairs.front();
  std::vector<Place> owners;
  if (key.processes == 2) owners.push_back(source);
  if (key.processes == 2 && source.is_gpu() && destination.is_gpu()) owners.push_back(destination);
  const std::vector<std::size_t> others = rivals(all, segment, middle);
  for (const Place owner : owners) {
    const auto is_its = [&](std::size_t i) { return is_of_owner(all.series[i]->path, owner); };
    if (std::ranges::any_of(listed, is_its)) continue;
    if (const auto best = std::ranges::find_if(others, is_its); best != others.end()) listed.push_back(*best);
  }
  for (const std::size_t i : listed) add(i);
  return ways;
}

PlanRow make_row(PlanKey key, const PairClass& pair_class, const Candidates& all, const Segment& segment) {
  const Cost& cost = all.costs[segment.choice];
  const double middle = middle_of(segment, cost);
  const std::optional<std::size_t> next = runner_up(all.costs, segment.choice, middle);
  PlanRow row{std::move(key), segment.from, segment.to};
  row.ways = ranked_ways(row.key, all, segment, next, middle);
  row.expected = points_in(segment, cost.points());
  row.why = reason(all, segment, next, middle);
  if (row.key.operation == name(Operation::loaded)) row.why += how_loaded(pair_class, all, *all.series[segment.choice]);
  return row;
}

void add_rows(Plan& plan, const Profile& profile, const PairClass& pair_class, const PlanKey& key, Operation operation,
              const MechanismOrder& order, const Hysteresis& hysteresis) {
  const Candidates all = candidates(profile, pair_class, operation, order, key.rail, key.encrypted);
  std::vector<Segment> segments = envelope(all.costs, hysteresis);
  if (segments.empty()) return;
  segments.front().from = 0;
  if (!fails_beyond(profile, *all.series[segments.back().choice])) segments.back().to = no_end;
  for (const Segment& segment : segments) plan.rows.push_back(make_row(key, pair_class, all, segment));
}

}  // namespace

Plan choose(const Profile& profile, const MechanismOrder& order, const Hysteresis& hysteresis) {
  Plan plan{profile.fingerprint, profile.machine, profile.backend, profile.simulated, {}, profile.other_nodes};
  for (const PairClass& pair_class : profile.classes) {
    std::vector<std::string> rails = single_rails(profile, pair_class);
    rails.insert(rails.begin(), "");
    for (const bool encrypted : {false, true})
      for (const std::string& rail : rails)
        for (const Operation operation : operations)
          add_rows(plan, profile, pair_class,
                   {std::string(name(operation)), pair_class.members, pair_class.processes, rail, encrypted}, operation,
                   order, hysteresis);
  }
  std::ranges::move(choose_collectives(profile, hysteresis), std::back_inserter(plan.rows));
  return plan;
}

Hysteresis hysteresis_from_json(const Json& value, std::string_view what) {
  if (!value.is_object()) throw Error(ErrorKind::invalid_input, std::string(what) + ": must be an object");
  Hysteresis hysteresis;
  const std::pair<const char*, double*> fields[] = {
      {"tolerance", &hysteresis.tolerance}, {"equal", &hysteresis.equal}, {"switching", &hysteresis.switching}};
  for (const auto& [key, field] : fields) {
    if (!value.contains(key) || value.at(key).is_null()) continue;
    *field = require_number(value, key, what);
    if (*field < 0 || *field > 1)
      throw Error(ErrorKind::invalid_input, std::string(what) + ": '" + key + "' must be from 0 to 1");
  }
  return hysteresis;
}

}  // namespace waywiser
