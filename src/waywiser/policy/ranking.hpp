#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "waywiser/policy/cost.hpp"
#include "waywiser/policy/envelope.hpp"

namespace waywiser {

// The fastest at `bytes` of those that were measured there, without `choice`.
std::optional<std::size_t> runner_up(std::span<const Cost> costs, std::size_t choice, double bytes);

// The measured points of a series that are in the segment.
std::vector<std::pair<Bytes, Seconds>> points_in(const Segment& segment, std::span<const Point> points);

}  // namespace waywiser
