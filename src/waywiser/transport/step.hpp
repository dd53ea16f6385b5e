#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waywiser/path/path.hpp"

namespace waywiser {

// Where bytes lie before or after a step.
struct StepEnd {
  Place place;
  std::string_view what = {};  // "a pinned buffer"; empty: the source or the destination itself
  bool beside = false;         // in the host memory nearest to `place`, which is a GPU
};

// One thing that happens while a transfer goes along a path, for people.
struct PathStep {
  std::string who;                  // "the copy engine of gpu0"
  std::string what;                 // "writes"
  std::optional<StepEnd> from, to;  // of a step that moves bytes; a network card has only one of them here
  Bytes piece = 0;                  // so many bytes at once, again and again; 0: all bytes at once
};
using PathSteps = std::vector<PathStep>;

// The CPU enqueues work for a GPU.
PathStep enqueue(Place gpu, std::string_view what);
// A copy engine of `engine` copies between two spots.
PathStep engine_copies(Place engine, const StepEnd& from, const StepEnd& to, Bytes piece = 0);
PathStep cpu_copies(const StepEnd& from, const StepEnd& to, Bytes piece = 0);

// Between a GPU and host memory that is not pinned, the driver copies through a pinned buffer of its own. (CUDA C++
// Best Practices Guide, "Pinned Memory"; CUDA driver API, "API synchronization behavior".) `pinned`: straight.
void add_engine_copy(PathSteps& steps, Place gpu, const StepEnd& from, const StepEnd& to, bool pinned, Bytes piece = 0);

}  // namespace waywiser
