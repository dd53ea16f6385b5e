#include "waywiser/collective/subtree.hpp"

#include <algorithm>

namespace waywiser {
namespace {

Extents by_place(const Binomial& tree, const Extents& ranks) {
  std::vector<std::size_t> counts;
  for (int place = 0; place < tree.ranks; ++place) counts.push_back(ranks.count(tree.rank_at(place)));
  return Extents(counts);
}

}  // namespace

Subtree::Subtree(const CollectiveCall& call) : tree_(call), ranks_(call), places_(by_place(tree_, ranks_)) {}

// The place of rank 0, within the range.
int Subtree::first_after_wrap(int first, int end) const { return std::clamp(tree_.ranks - tree_.root, first, end); }

std::array<Block, 2> Subtree::at_root(Area area, int first, int end) const {
  const int middle = first_after_wrap(first, end);
  const int start = tree_.rank_at(first), again = tree_.rank_at(middle);
  return {ranks_.range(area, start, start + middle - first), ranks_.range(area, again, again + end - middle)};
}

std::array<Block, 2> Subtree::below(Block buffer, int first, int end) const {
  const int middle = first_after_wrap(first, end);
  const std::size_t skipped = places_.block(buffer.area, tree_.place).offset;
  std::array<Block, 2> pieces{places_.range(buffer.area, first, middle), places_.range(buffer.area, middle, end)};
  for (Block& piece : pieces) piece.offset = piece.offset - skipped + buffer.offset;
  return pieces;
}

std::size_t Subtree::total() const { return places_.range(Area::input, tree_.place, end()).count; }

}  // namespace waywiser
