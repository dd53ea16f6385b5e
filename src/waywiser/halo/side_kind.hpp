#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "waywiser/halo/boundary.hpp"

namespace waywiser {

// Sides that are alike, so that tune() gives them one variant: they lie alike in their grid, are of one power of two
// bytes, all contiguous or not, and to a rank of the same machine or not. Pure functions.
struct HaloSideKind {
  std::vector<bool> face;  // of a grid: the dimensions in which the neighbour lies elsewhere
  unsigned magnitude = 0;  // bytes of all fields: from 2^magnitude to below twice that
  bool contiguous = false, same_machine = false;

  bool operator==(const HaloSideKind&) const = default;
};

// As one number, which is equal for equal kinds; never 0.
std::uint64_t key_of(const HaloSideKind& kind);
HaloSideKind kind_of(std::uint64_t key);
// "faces (0, 1) of 64 to 128 bytes, contiguous"
std::string words_of(const HaloSideKind& kind);
// Where a neighbour lies: "(0, 1)", "(0, -1)".
std::string words_of(const std::vector<int>& face);

// Of each side that a rank gives; 0 for a side without bytes. `same_machine`: of all ranks.
std::vector<std::uint64_t> kinds_of_sides(const HaloPartition& partition, const HaloBoundary& boundary,
                                          const std::vector<bool>& same_machine);

}  // namespace waywiser
