#pragma once

#include <cstddef>
#include <span>

#include "waywiser/comm/schedule.hpp"

namespace waywiser {

// A block that a step of a round reads or writes; of layouts that are valid.
struct BlockAccess {
  const Block* block = nullptr;
  bool write = false;
};

inline constexpr std::size_t many_runs = 100'000;

// Whether elements that one of the accesses writes are touched by another one, or twice by itself. From `many` runs in
// a buffer on, boxes are not taken apart entirely: in arrays of several components or planes these are alike, and each
// kind is looked at once.
bool touch_the_same(const Schedule& schedule, std::span<const BlockAccess> accesses, std::size_t many = many_runs);

}  // namespace waywiser
