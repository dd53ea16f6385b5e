#pragma once

#include <vector>

#include "waywiser/measure/point_store.hpp"

namespace waywiser {

// The paths that may matter at a size, judged by measurements near it; in the order of `paths`.

// Paths measured there that are at most `within` times as slow as the fastest. If a larger message took less time, that
// time counts: the smaller one was disturbed.
std::vector<Path> close_at(const PointStore& store, const std::vector<Path>& paths, Operation operation, Bytes bytes,
                           double within);

// All paths except those that took more than 2.5 times the fastest at a smaller and at a larger size, both within a
// factor of 256; from `large` on, where messages take long: all except those that took more than 4 times the fastest at
// the next smaller size.
std::vector<Path> promising_at(const PointStore& store, const std::vector<Path>& paths, Operation operation,
                               Bytes bytes, Bytes large);

}  // namespace waywiser
