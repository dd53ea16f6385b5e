#pragma once

#include <string>
#include <vector>

#include "waywiser/base/json.hpp"

namespace waywiser::sim {

// When each step ran.
struct Span {
  std::string row;   // who: "rank 3", "0:gpu0.h2d"
  std::string name;  // what: "send to 4"
  Seconds begin = 0, end = 0;
  Bytes bytes = 0;
};

struct Trace {
  std::string title;
  bool simulated = true;
  std::vector<Span> spans;
};

inline constexpr std::size_t most_spans = 200000;

// Chrome's trace event format, which Perfetto reads: a row is a thread; times in microseconds.
Json chrome_trace(const Trace& trace);

}  // namespace waywiser::sim
