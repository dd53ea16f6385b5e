#pragma once

#include "waywiser/heap/device/terms.hpp"

namespace waywiser {

// What kernels of a program with NVSHMEM's names use: its heap, and teams by their handle (size 0: there is none).
struct NvshmemTerms {
  static constexpr int most_teams = 32;

  one_sided::HeapTerms heap;
  one_sided::TeamTerms teams[most_teams];
};

}  // namespace waywiser
