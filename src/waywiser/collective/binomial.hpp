#pragma once

#include "waywiser/collective/cost.hpp"
#include "waywiser/collective/extents.hpp"

namespace waywiser {

// A tree over the places 0 ... n - 1, counted from the root around the ring of ranks. A place's parent is the place
// without its lowest set bit; its children are at distance 1, 2, 4, ... below that bit.
struct Binomial {
  int ranks, root, place;

  explicit Binomial(const CollectiveCall& call)
      : ranks(call.ranks), root(call.root), place(wrap(call.rank - call.root, call.ranks)) {}

  int levels() const { return log2_ceil(ranks); }
  // The lowest set bit of a place; for the root the first power of two that is not below the number of ranks.
  int span() const { return place == 0 ? 1 << levels() : place & -place; }
  int rank_at(int other) const { return wrap(other + root, ranks); }
  // The places at and below this one are place ... end - 1.
  int end_of(int other, int width) const { return other + width < ranks ? other + width : ranks; }
};

}  // namespace waywiser
