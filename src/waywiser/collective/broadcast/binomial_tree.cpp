#include "waywiser/collective/binomial.hpp"
#include "waywiser/collective/broadcast/broadcast.hpp"
#include "waywiser/collective/schedule_maker.hpp"

namespace waywiser::collective::broadcast {

// In round i the places that have bit levels - 1 - i as their lowest receive.
Schedule binomial_tree(const CollectiveCall& call) {
  ScheduleMaker maker("binomial_tree", call);
  const Binomial tree(call);
  const Block all = output(call.count);
  const auto round_of = [&](int bit) { return static_cast<std::uint32_t>(tree.levels() - 1 - log2_floor(bit)); };
  if (tree.place == 0)
    maker.copy(0, all, input(call.count));
  else
    maker.receive(round_of(tree.span()), tree.rank_at(tree.place - tree.span()), all);
  for (int bit = tree.span() / 2; bit > 0; bit /= 2)
    if (tree.place + bit < tree.ranks)
      maker.send(round_of(bit), tree.rank_at(tree.place + bit), tree.place == 0 ? input(call.count) : all);
  return maker.finish();
}

CollectiveCost binomial_tree_cost(const CollectiveCall& call) {
  const auto levels = static_cast<std::uint64_t>(log2_ceil(call.ranks));
  return {levels, levels, levels * call.count};
}

}  // namespace waywiser::collective::broadcast
