#pragma once

#include <span>
#include <vector>

#include "waywiser/policy/cost.hpp"

namespace waywiser {

// A range of sizes, inclusive, and the cost that serves it.
struct Segment {
  Bytes from = 0, to = 0;
  std::size_t choice = 0;
};

struct Hysteresis {
  double tolerance = 0.04;  // nowhere worse than the fastest by more than this, unless the intervals are unusually wide
  double equal = 0.03;      // overlapping intervals count as equal up to this difference of the medians
  double switching = 0.03;  // a switch must win more than this, summed over the measured sizes
};

// The lower envelope over all sizes at which any cost is known, with as few switches as the tolerance allows. Among
// equals the earlier cost wins. Neighbouring segments have different choices; a gap means that no cost is known there.
std::vector<Segment> envelope(std::span<const Cost> costs, const Hysteresis& hysteresis = {});

}  // namespace waywiser
