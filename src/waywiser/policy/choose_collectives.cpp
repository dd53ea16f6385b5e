#include "waywiser/policy/choose_collectives.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <tuple>

#include "waywiser/policy/ranking.hpp"

namespace waywiser {
namespace {

// The ways of one collective, memory and number of ranks.
struct Rivals {
  std::vector<const CollectiveSeries*> series;
  std::vector<Cost> costs;

  Bytes most() const {
    Bytes most = 0;
    for (const CollectiveSeries* each : series) most = std::max(most, each->points.back().bytes);
    return most;
  }
};

std::string times_as_long(double ratio) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", ratio);
  return text;
}

PlanKey key_of(const CollectiveSeries& series) {
  return {.operation = series.operation, .memory = series.memory, .ranks = series.ranks, .partner = series.partner};
}

PlanRow make_row(const Rivals& rivals, const Segment& segment) {
  const CollectiveSeries& series = *rivals.series[segment.choice];
  const double least = static_cast<double>(series.points.front().bytes);
  const double most = static_cast<double>(series.points.back().bytes);
  const double from = std::max(least, static_cast<double>(segment.from));
  const double middle = std::sqrt(from * std::max(from, std::min(most, static_cast<double>(segment.to))));
  const std::string size = format_bytes(static_cast<Bytes>(middle));
  PlanRow row{key_of(series), segment.from, segment.to};
  row.ways = {{parse_way(series.way), 1}};
  row.expected = points_in(segment, series.points);
  row.why = "the only way at " + size;
  const std::optional<std::size_t> next = runner_up(rivals.costs, segment.choice, middle);
  if (!next) return row;
  const double ratio = rivals.costs[*next].seconds(middle) / rivals.costs[segment.choice].seconds(middle);
  row.ways.push_back({parse_way(rivals.series[*next]->way), ratio});
  row.why = rivals.series[*next]->way + " takes " + times_as_long(ratio) + " times as long at " + size;
  return row;
}

}  // namespace

std::vector<PlanRow> choose_collectives(const Profile& profile, const Hysteresis& hysteresis) {
  std::map<std::tuple<std::string, std::string, int, std::string>, Rivals> all;
  for (const CollectiveSeries& series : profile.collectives) {
    if (series.points.empty()) continue;
    Rivals& rivals = all[{series.operation, series.memory, series.ranks, series.partner}];
    rivals.series.push_back(&series);
    rivals.costs.emplace_back(series.points);
  }
  std::vector<PlanRow> rows;
  for (const auto& [order, rivals] : all) {
    std::vector<Segment> segments = envelope(rivals.costs, hysteresis);
    if (segments.empty()) continue;
    segments.front().from = 0;
    const PlanKey key = key_of(*rivals.series.front());
    segments.back().to = key.memory == "gpu" && key.partner.empty() ? 2 * rivals.most() : no_end;
    for (const Segment& segment : segments) rows.push_back(make_row(rivals, segment));
  }
  return rows;
}

}  // namespace waywiser
