#include "waywiser/policy/choose.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "waywiser/base/error.hpp"
#include "waywiser/policy/choose_collectives.hpp"
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

// The next best at `bytes`; the choice itself when there is none.
std::size_t runner_up(const std::vector<Cost>& costs, std::size_t choice, double bytes) {
  std::size_t next = choice;
  for (std::size_t i = 0; i < costs.size(); ++i)
    if (i != choice && costs[i].known(bytes) &&
        (next == choice || costs[i].seconds(bytes) < costs[next].seconds(bytes)))
      next = i;
  return next;
}

// Whether the owner of this place runs the path alone; between GPUs its GPU does all of the work.
bool is_of_owner(const Path& path, Place owner) {
  return path.source.is_gpu() && path.destination.is_gpu() ? runs_alone_on(path, owner) : !is_two_sided(path);
}

// The fastest path that `may` serve, at `bytes`; if none was measured there, at the size of the segment next to it.
template <typename May>
std::optional<Path> fastest(const std::vector<const Series*>& all, const Segment& segment, double bytes, May may) {
  const Series* best = nullptr;
  std::pair least(std::numeric_limits<double>::infinity(), 0.0);  // distance, seconds
  for (const Series* series : all) {
    if (series->points.empty() || !may(series->path)) continue;
    const Cost cost(series->points);
    const double at = std::clamp(bytes, static_cast<double>(series->points.front().bytes),
                                 static_cast<double>(series->points.back().bytes));
    if (at < static_cast<double>(segment.from) || at > static_cast<double>(segment.to)) continue;
    const std::pair found(std::abs(std::log2(at + 1) - std::log2(bytes + 1)), cost.seconds(at));
    if (found >= least) continue;
    best = series;
    least = found;
  }
  return best == nullptr ? std::nullopt : std::optional(best->path);
}

std::string number(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string reason(const Candidates& all, const Segment& segment, std::size_t next, double middle) {
  const std::string size = format_bytes(static_cast<Bytes>(middle));
  const Cost& chosen = all.costs[segment.choice];
  if (next == segment.choice) return "the only path at " + size;
  const std::string other = label(all.series[next]->path);
  const double ratio = all.costs[next].seconds(middle) / chosen.seconds(middle);
  if (overlap(chosen.interval(middle), all.costs[next].interval(middle)))
    return "equal to " + other + " at " + size + " within the confidence intervals" +
           (segment.choice < next ? ": the earlier mechanism is taken" : "");
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

PlanRow make_row(const PairClass& pair_class, const std::string& rail, Operation operation, const Candidates& all,
                 const Segment& segment) {
  PlanRow row;
  row.pairs = pair_class.members;
  row.rail = rail;
  row.processes = pair_class.processes;
  row.operation = operation;
  row.from_bytes = segment.from;
  row.to_bytes = segment.to;
  row.path = all.series[segment.choice]->path;
  const Cost& cost = all.costs[segment.choice];
  for (const Point& point : cost.points())
    if (point.bytes >= segment.from && point.bytes <= segment.to) row.expected.emplace_back(point.bytes, point.seconds);
  const double middle = middle_of(segment, cost);
  const std::size_t next = runner_up(all.costs, segment.choice, middle);
  if (next != segment.choice) {
    row.runner_up = all.series[next]->path;
    row.runner_up_ratio = all.costs[next].seconds(middle) / cost.seconds(middle);
  }
  const Place source = row.pairs.front().first, destination = row.pairs.front().second;
  const auto best_of = [&](Place owner) {
    return fastest(all.series, segment, middle, [&](const Path& path) { return is_of_owner(path, owner); });
  };
  if (row.processes == 2 && !is_of_owner(row.path, source)) row.one_sided = best_of(source);
  if (row.processes == 2 && source.is_gpu() && !is_of_owner(row.path, destination) && destination.is_gpu())
    row.reading = best_of(destination);
  row.encrypted = fastest(all.encrypted, segment, middle, [](const Path&) { return true; });
  row.why = reason(all, segment, next, middle);
  if (operation == Operation::loaded) row.why += how_loaded(pair_class, all, *all.series[segment.choice]);
  return row;
}

void add_rows(Plan& plan, const Profile& profile, const PairClass& pair_class, const std::string& rail,
              Operation operation, const MechanismOrder& order, const Hysteresis& hysteresis) {
  const Candidates all = candidates(profile, pair_class, operation, order, rail);
  std::vector<Segment> segments = envelope(all.costs, hysteresis);
  if (segments.empty()) return;
  segments.front().from = 0;
  if (!fails_beyond(profile, *all.series[segments.back().choice])) segments.back().to = no_end;
  for (const Segment& segment : segments) plan.rows.push_back(make_row(pair_class, rail, operation, all, segment));
}

}  // namespace

Plan choose(const Profile& profile, const MechanismOrder& order, const Hysteresis& hysteresis) {
  Plan plan{profile.fingerprint, profile.machine, profile.backend, profile.simulated, {}, {}, profile.other_nodes};
  for (const PairClass& pair_class : profile.classes) {
    std::vector<std::string> rails = single_rails(profile, pair_class);
    rails.insert(rails.begin(), "");
    for (const std::string& rail : rails)
      for (const Operation operation : operations)
        add_rows(plan, profile, pair_class, rail, operation, order, hysteresis);
  }
  plan.collectives = choose_collectives(profile, hysteresis);
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
