#include "waywiser/collective/all_reduce/all_reduce.hpp"
#include "waywiser/collective/extents.hpp"
#include "waywiser/collective/folding.hpp"
#include "waywiser/collective/schedule_maker.hpp"

namespace waywiser::collective::all_reduce {

Schedule recursive_doubling(const CollectiveCall& call) {
  ScheduleMaker maker("recursive_doubling", call);
  const Folding folding(call.ranks);
  const int rank = call.rank;
  const Block all = output(call.count);
  const std::uint32_t last = 2 + 2 * static_cast<std::uint32_t>(folding.levels());
  if (!folding.takes_part(rank)) {
    maker.send(1, rank + 1, input(call.count));
    maker.receive(last, rank + 1, all);
    return maker.finish();
  }
  // A rank without a folded partner sends its input in the first exchange, while the input is copied.
  const bool at_once = !folding.in_pair(rank);
  maker.copy(at_once ? 2 : 0, all, input(call.count));
  if (!at_once) maker.receive_reduce(1, rank - 1, all);
  const Block other = maker.allocate(folding.levels() == 0 ? 0 : call.count);
  std::uint32_t round = 2;
  for (int distance = 1; distance < folding.power; distance *= 2, round += 2) {
    const int peer = folding.rank_at(folding.place(rank) ^ distance);
    maker.send(round, peer, at_once && distance == 1 ? input(call.count) : all);
    maker.receive(round, peer, other);
    maker.reduce(round + 1, all, other);
  }
  if (folding.in_pair(rank)) maker.send(last, rank - 1, all);
  return maker.finish();
}

CollectiveCost recursive_doubling_cost(const CollectiveCall& call) {
  const Folding folding(call.ranks);
  const auto levels = static_cast<std::uint64_t>(folding.levels());
  const std::uint64_t folded = folding.pairs == 0 ? 0 : 1;
  return {levels + 2 * folded, levels + folded, (levels + folded) * call.count, (1 + levels + folded) * call.count};
}

}  // namespace waywiser::collective::all_reduce
