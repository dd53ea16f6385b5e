#pragma once

#include <vector>

#include "waywiser/measure/point_store.hpp"

namespace waywiser {

// Half way between neighbouring sizes at which different paths are the fastest, down to a gap that is small enough;
// smaller still where a cliff makes the wrong path expensive. So a finished profile has nothing left to add.
std::vector<Bytes> switch_sizes(const PointStore& store, const std::vector<Path>& paths, Operation operation);

// Sizes at which a path took clearly longer than for a larger message: the machine was probably disturbed.
std::vector<Bytes> doubtful_sizes(const PointStore& store, const std::vector<Path>& paths, Operation operation);

}  // namespace waywiser
