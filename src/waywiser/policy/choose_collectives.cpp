#include "waywiser/policy/choose_collectives.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>

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

void add_runner_up(CollectiveRow& row, const Rivals& rivals, const Segment& segment, double bytes) {
  std::size_t next = segment.choice;
  for (std::size_t i = 0; i < rivals.costs.size(); ++i)
    if (i != segment.choice && rivals.costs[i].known(bytes) &&
        (next == segment.choice || rivals.costs[i].seconds(bytes) < rivals.costs[next].seconds(bytes)))
      next = i;
  const std::string size = format_bytes(static_cast<Bytes>(bytes));
  row.why = "the only way at " + size;
  if (next == segment.choice) return;
  row.runner_up = rivals.series[next]->way;
  row.runner_up_ratio = rivals.costs[next].seconds(bytes) / rivals.costs[segment.choice].seconds(bytes);
  row.why = row.runner_up + " takes " + times_as_long(row.runner_up_ratio) + " times as long at " + size;
}

CollectiveRow make_row(const Rivals& rivals, const Segment& segment) {
  const CollectiveSeries& series = *rivals.series[segment.choice];
  CollectiveRow row{series.operation, series.memory, series.ranks, segment.from, segment.to, series.way, {}, "", 0, ""};
  for (const Point& point : series.points)
    if (point.bytes >= segment.from && point.bytes <= segment.to) row.expected.emplace_back(point.bytes, point.seconds);
  const double least = static_cast<double>(series.points.front().bytes);
  const double most = static_cast<double>(series.points.back().bytes);
  const double from = std::max(least, static_cast<double>(segment.from));
  add_runner_up(row, rivals, segment,
                std::sqrt(from * std::max(from, std::min(most, static_cast<double>(segment.to)))));
  return row;
}

}  // namespace

std::vector<CollectiveRow> choose_collectives(const Profile& profile, const Hysteresis& hysteresis) {
  std::map<std::tuple<std::string, std::string, int>, Rivals> all;
  for (const CollectiveSeries& series : profile.collectives) {
    if (series.points.empty()) continue;
    Rivals& rivals = all[{series.operation, series.memory, series.ranks}];
    rivals.series.push_back(&series);
    rivals.costs.emplace_back(series.points);
  }
  std::vector<CollectiveRow> rows;
  for (const auto& [key, rivals] : all) {
    std::vector<Segment> segments = envelope(rivals.costs, hysteresis);
    if (segments.empty()) continue;
    segments.front().from = 0;
    segments.back().to = std::get<1>(key) == "gpu" ? 2 * rivals.most() : no_end;
    for (const Segment& segment : segments) rows.push_back(make_row(rivals, segment));
  }
  return rows;
}

}  // namespace waywiser
