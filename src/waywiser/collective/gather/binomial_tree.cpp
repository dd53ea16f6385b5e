#include "waywiser/collective/gather/gather.hpp"
#include "waywiser/collective/schedule_maker.hpp"
#include "waywiser/collective/subtree.hpp"

namespace waywiser::collective::gather {

// In round i + 1 the places whose lowest set bit is i send all that they have gathered.
Schedule binomial_tree(const CollectiveCall& call) {
  ScheduleMaker maker("binomial_tree", call);
  const Subtree subtree(call);
  const Binomial& tree = subtree.tree();
  const auto round_of = [](int bit) { return static_cast<std::uint32_t>(log2_floor(bit) + 1); };
  const Block own = input(Extents(call).count(call.rank));
  const bool root = tree.place == 0, leaf = subtree.end() == tree.place + 1;
  const Block held = root ? output(0) : leaf ? own : maker.allocate(subtree.total());
  const auto pieces = [&](int first, int end) {
    return root ? subtree.at_root(Area::output, first, end) : subtree.below(held, first, end);
  };
  if (root || !leaf) {
    const auto [block, nothing] = pieces(tree.place, tree.place + 1);
    maker.copy(0, block.count != 0 ? block : nothing, own);
  }
  for (int bit = 1; bit < tree.span() && tree.place + bit < tree.ranks; bit *= 2)
    for (const Block& piece : pieces(tree.place + bit, tree.end_of(tree.place + bit, bit)))
      maker.receive(round_of(bit), tree.rank_at(tree.place + bit), piece);
  if (root) return maker.finish();
  for (const Block& piece : pieces(tree.place, subtree.end()))
    maker.send(round_of(tree.span()), tree.rank_at(tree.place - tree.span()), piece);
  return maker.finish();
}

CollectiveCost binomial_tree_cost(const CollectiveCall& call) {
  const auto levels = static_cast<std::uint64_t>(log2_ceil(call.ranks));
  if (levels == 0) return {};
  const auto block = static_cast<std::uint64_t>(Extents(call).largest());
  return {levels, levels + 1, (static_cast<std::uint64_t>(call.ranks) - 1) * block,
          blocks_passed_on(call.ranks) * block};
}

}  // namespace waywiser::collective::gather
