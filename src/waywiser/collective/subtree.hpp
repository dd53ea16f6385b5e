#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "waywiser/collective/binomial.hpp"

namespace waywiser {

// The blocks of a range of places. At the root they are in rank order, in two pieces if the range wraps past the last
// rank; elsewhere in the order of places. Both ends of a transfer see the same two pieces.
class Subtree {
 public:
  explicit Subtree(const CollectiveCall& call);

  const Binomial& tree() const { return tree_; }
  // The places first ... end - 1 in the root's buffer.
  std::array<Block, 2> at_root(Area area, int first, int end) const;
  // The same in a buffer that begins with this rank's place.
  std::array<Block, 2> below(Block buffer, int first, int end) const;
  // The elements of this rank and all places below it.
  std::size_t total() const;
  int end() const { return tree_.end_of(tree_.place, tree_.span()); }

 private:
  int first_after_wrap(int first, int end) const;

  Binomial tree_;
  Extents ranks_, places_;
};

// Of the root's child that passes most on: the last one, or the one before it.
constexpr std::uint64_t blocks_passed_on(int ranks) {
  const int last = 1 << log2_ceil(ranks) >> 1;
  return static_cast<std::uint64_t>(std::max({ranks - last, last / 2, 1}) - 1);
}

}  // namespace waywiser
