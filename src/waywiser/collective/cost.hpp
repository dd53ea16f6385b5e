#pragma once

#include <bit>
#include <cstdint>

namespace waywiser {

// Upper bounds of a collective: message times on the longest chain; messages and elements of the rank that sends or
// receives most; `worked` for reductions elements of the rank that copies or reduces most, for gather and scatter of
// the rank that passes most on. Exact if the ranks divide the counts, unless an algorithm says "at most".
struct CollectiveCost {
  std::uint64_t steps = 0, messages = 0, elements = 0, worked = 0;

  bool operator==(const CollectiveCost&) const = default;
};

constexpr int log2_floor(int n) { return std::bit_width(static_cast<unsigned>(n)) - 1; }
constexpr int log2_ceil(int n) { return std::bit_width(static_cast<unsigned>(n) - 1); }

constexpr std::uint64_t divide_up(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

}  // namespace waywiser
