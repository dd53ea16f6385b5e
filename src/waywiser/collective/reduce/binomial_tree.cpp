#include "waywiser/collective/binomial.hpp"
#include "waywiser/collective/reduce/reduce.hpp"
#include "waywiser/collective/schedule_maker.hpp"

namespace waywiser::collective::reduce {

// In round i + 1 the places whose lowest set bit is i send.
Schedule binomial_tree(const CollectiveCall& call) {
  ScheduleMaker maker("binomial_tree", call);
  const Binomial tree(call);
  const auto round_of = [](int bit) { return static_cast<std::uint32_t>(log2_floor(bit) + 1); };
  Block sum = input(call.count);
  if (tree.place == 0)
    sum = output(call.count);
  else if (tree.span() > 1 && tree.place + 1 < tree.ranks)
    sum = maker.allocate(call.count);
  if (sum.area != Area::input) maker.copy(0, sum, input(call.count));
  for (int bit = 1; bit < tree.span(); bit *= 2)
    if (tree.place + bit < tree.ranks) maker.receive_reduce(round_of(bit), tree.rank_at(tree.place + bit), sum);
  if (tree.place != 0) maker.send(round_of(tree.span()), tree.rank_at(tree.place - tree.span()), sum);
  return maker.finish();
}

CollectiveCost binomial_tree_cost(const CollectiveCall& call) {
  const auto levels = static_cast<std::uint64_t>(log2_ceil(call.ranks));
  return {levels, levels, levels * call.count, (levels + 1) * call.count};
}

}  // namespace waywiser::collective::reduce
