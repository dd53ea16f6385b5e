#pragma once

#include <cstddef>
#include <vector>

namespace waywiser {

// The tree in which the ranks of a job stay connected: each with the rank above it and with at most `branches` below.
// The ranks below rank r are r * branches + 1 to r * branches + branches; a job of up to branches + 1 ranks is a star
// around rank 0.
struct RankTree {
  int rank = 0, size = 1, branches = 1;

  bool is_root() const noexcept { return rank == 0; }
  int above_of(int other) const noexcept { return (other - 1) / branches; }
  int above() const noexcept { return above_of(rank); }
  bool is_above_any(int other) const noexcept { return static_cast<long>(other) * branches + 1 < size; }
  std::vector<int> below() const {
    std::vector<int> ranks;
    for (long next = static_cast<long>(rank) * branches + 1; next < size && next <= (rank + 1L) * branches; ++next)
      ranks.push_back(static_cast<int>(next));
    return ranks;
  }
  // In all generations.
  std::size_t count_below() const noexcept {
    std::size_t count = 0;
    for (long first = rank, last = rank;;) {
      first = first * branches + 1;
      last = (last + 1) * branches;
      if (first >= size) return count;
      count += static_cast<std::size_t>((last < size ? last : size - 1L) - first + 1);
    }
  }
  // The neighbour through which a rank below this one is reached; -1: it is not below.
  int towards(int other) const noexcept {
    if (other < 0 || other >= size) return -1;
    while (other > rank && above_of(other) != rank) other = above_of(other);
    return other > rank ? other : -1;
  }
};

inline constexpr int usual_branches = 16;
// WAYWISER_BRANCHES, from 1 to 1024, or usual_branches. Throws invalid_input.
int branches_of_tree();

}  // namespace waywiser
