#pragma once

#include <vector>

#include "waywiser/measure/point_store.hpp"

namespace waywiser {

// The paths that may matter at a size, judging by what was measured near it; in the order of `paths`.

// Measured there, and at most `within` times as slow as the fastest; what a larger message took counts, if it is less,
// for a smaller one needs no longer: it was disturbed.
std::vector<Path> close_at(const PointStore& store, const std::vector<Path>& paths, Operation operation, Bytes bytes,
                           double within);

// All but those that took more than 2.5 times the fastest at a smaller and at a larger size, these within a factor of
// 256; from `large` on, where messages take long: all but those that took more than 4 times the fastest at the next
// smaller size.
std::vector<Path> promising_at(const PointStore& store, const std::vector<Path>& paths, Operation operation,
                               Bytes bytes, Bytes large);

}  // namespace waywiser
