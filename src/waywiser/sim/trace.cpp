#include "waywiser/sim/trace.hpp"

#include <map>

namespace waywiser::sim {

Json chrome_trace(const Trace& trace) {
  constexpr double micro = 1e6;
  Json events = Json::array();
  std::map<std::string, int> rows;
  for (const Span& span : trace.spans) {
    const auto [row, fresh] = rows.emplace(span.row, static_cast<int>(rows.size()));
    if (fresh)
      events.push_back(
          {{"ph", "M"}, {"pid", 0}, {"tid", row->second}, {"name", "thread_name"}, {"args", {{"name", span.row}}}});
    events.push_back({{"ph", "X"},
                      {"pid", 0},
                      {"tid", row->second},
                      {"name", span.name},
                      {"ts", span.begin * micro},
                      {"dur", (span.end - span.begin) * micro},
                      {"args", {{"bytes", span.bytes}}}});
  }
  return {{"displayTimeUnit", "ns"},
          {"otherData", {{"title", trace.title}, {"simulated", trace.simulated}}},
          {"traceEvents", events}};
}

}  // namespace waywiser::sim
