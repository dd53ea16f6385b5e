#include "waywiser/collective/double_tree.hpp"

#include "waywiser/collective/broadcast/broadcast.hpp"
#include "waywiser/collective/pipeline.hpp"
#include "waywiser/collective/schedule_maker.hpp"

namespace waywiser::collective::broadcast {
namespace {

// Piece k reaches depth d in round d + k.
void add_tree(ScheduleMaker& maker, const CollectiveCall& call, int tree, const Share& share) {
  const int n = call.ranks, place = wrap(call.rank - call.root, n);
  const auto rank_of = [&](int node) { return wrap(node + 1 + call.root, n); };  // nodes are the places after 0
  const TreeNode node = place == 0 ? TreeNode{} : node_of_tree(tree, n - 1, place - 1);
  for (int piece = 0; piece < share.pieces.parts(); ++piece) {
    if (place == 0) {
      const int top = root_of_tree(tree, n - 1);
      maker.send(static_cast<std::uint32_t>(piece), rank_of(top), share.piece(Area::input, piece));
      continue;
    }
    const Block block = share.piece(Area::output, piece);
    const auto round = static_cast<std::uint32_t>(node.depth + piece);
    maker.receive(round, node.parent < 0 ? call.root : rank_of(node.parent), block);
    for (const int child : node.children) maker.send(round + 1, rank_of(child), block);
  }
}

}  // namespace

Schedule double_tree(const CollectiveCall& call) {
  ScheduleMaker maker("double_tree", call);
  if (call.rank == call.root) maker.copy(0, output(call.count), input(call.count));
  if (call.ranks == 1) return maker.finish();
  const Extents halves(call.count, 2);
  const int pieces = pieces_of(call, halves.largest());
  for (const int tree : {0, 1})
    add_tree(maker, call, tree, {Extents(halves.count(tree), pieces), halves.block(Area::output, tree).offset});
  return maker.finish();
}

CollectiveCost double_tree_cost(const CollectiveCall& call) {
  if (call.ranks == 1) return {};
  const auto pieces = static_cast<std::uint64_t>(pieces_of(call, divide_up(call.count, 2)));
  return {static_cast<std::uint64_t>(log2_floor(call.ranks - 1)) + pieces, 2 * pieces, call.count};
}

}  // namespace waywiser::collective::broadcast
