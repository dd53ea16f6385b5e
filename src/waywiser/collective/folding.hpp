#pragma once

#include "waywiser/collective/cost.hpp"

namespace waywiser {

// Folds a number of ranks to a power of two: in the first `pairs` pairs of ranks (0 and 1, 2 and 3, ...) the odd rank
// takes part for both, at place rank / 2; the ranks after them take part for themselves.
struct Folding {
  int power, pairs;

  explicit Folding(int ranks) : power(1 << log2_floor(ranks)), pairs(ranks - power) {}

  bool in_pair(int rank) const { return rank < 2 * pairs; }
  bool takes_part(int rank) const { return !in_pair(rank) || rank % 2 == 1; }
  int place(int rank) const { return in_pair(rank) ? rank / 2 : rank - pairs; }
  int rank_at(int place) const { return place < pairs ? 2 * place + 1 : place + pairs; }
  int levels() const { return log2_floor(power); }
};

}  // namespace waywiser
