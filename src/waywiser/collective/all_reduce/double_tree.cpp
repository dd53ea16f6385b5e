#include "waywiser/collective/double_tree.hpp"

#include "waywiser/collective/all_reduce/all_reduce.hpp"
#include "waywiser/collective/pipeline.hpp"
#include "waywiser/collective/schedule_maker.hpp"

namespace waywiser::collective::all_reduce {
namespace {

// Piece k goes up from depth d in round 1 + 2 (D - d) + side + k, and down to depth d in round 2 D + d + k: within a
// round each rank handles different pieces.
void add_tree(ScheduleMaker& maker, const CollectiveCall& call, int tree, const Share& share) {
  const TreeNode node = node_of_tree(tree, call.ranks, call.rank);
  const int deepest = log2_floor(call.ranks);
  const auto up = [&](int depth, bool right, int piece) {
    return static_cast<std::uint32_t>(1 + 2 * (deepest - depth) + (right ? 1 : 0) + piece);
  };
  const auto down = [&](int depth, int piece) { return static_cast<std::uint32_t>(2 * deepest + depth + piece); };
  for (int piece = 0; piece < share.pieces.parts(); ++piece) {
    const Block block = share.piece(Area::output, piece);
    for (const int child : node.children) {
      const bool right = child != node.children.front();
      maker.receive_reduce(up(node.depth + 1, right, piece), child, block);
      maker.send(down(node.depth + 1, piece), child, block);
    }
    if (node.parent < 0) continue;
    maker.send(up(node.depth, node.right, piece), node.parent, block);
    maker.receive(down(node.depth, piece), node.parent, block);
  }
}

}  // namespace

Schedule double_tree(const CollectiveCall& call) {
  ScheduleMaker maker("double_tree", call);
  maker.copy(0, output(call.count), input(call.count));
  if (call.ranks == 1) return maker.finish();
  const Extents halves(call.count, 2);
  const int pieces = pieces_of(call, halves.largest());
  for (const int tree : {0, 1})
    add_tree(maker, call, tree, {Extents(halves.count(tree), pieces), halves.block(Area::output, tree).offset});
  return maker.finish();
}

CollectiveCost double_tree_cost(const CollectiveCall& call) {
  if (call.ranks == 1) return {0, 0, 0, call.count};
  const auto pieces = static_cast<std::uint64_t>(pieces_of(call, divide_up(call.count, 2)));
  return {3 * static_cast<std::uint64_t>(log2_floor(call.ranks)) + pieces - 1, 4 * pieces, 2 * call.count,
          2 * call.count};
}

}  // namespace waywiser::collective::all_reduce
