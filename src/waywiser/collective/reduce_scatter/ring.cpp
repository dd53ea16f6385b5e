#include "waywiser/collective/extents.hpp"
#include "waywiser/collective/reduce_scatter/reduce_scatter.hpp"
#include "waywiser/collective/schedule_maker.hpp"

namespace waywiser::collective::reduce_scatter {

// In each round one block is sent; the next one arrives and is added to a copy made before; and a third slot is filled
// for the following round.
Schedule ring(const CollectiveCall& call) {
  ScheduleMaker maker("ring", call);
  const int n = call.ranks, rank = call.rank;
  const Extents blocks(call);
  const std::size_t size = blocks.largest();
  const Block slots = maker.allocate(n > 2 ? 3 * size : 0);
  const auto mine = [&](int index) { return blocks.block(Area::input, wrap(index, n)); };
  // The slot in which the block of `step` is reduced; the last one is this rank's own.
  const auto place = [&](int step) {
    const std::size_t count = mine(rank - 2 - step).count;
    if (step + 2 >= n) return output(count);
    return scratch(slots.offset + static_cast<std::size_t>(step % 3) * size, count);
  };
  maker.copy(0, place(0), mine(rank - 2));
  for (int step = 0; step + 1 < n; ++step) {
    const auto round = static_cast<std::uint32_t>(step) + 1;
    maker.send(round, wrap(rank + 1, n), step == 0 ? mine(rank - 1) : place(step - 1));
    maker.receive_reduce(round, wrap(rank - 1, n), place(step));
    if (step + 2 < n) maker.copy(round, place(step + 1), mine(rank - 3 - step));
  }
  return maker.finish();
}

CollectiveCost ring_cost(const CollectiveCall& call) {
  const auto others = static_cast<std::uint64_t>(call.ranks) - 1;
  const auto block = static_cast<std::uint64_t>(Extents(call).largest());
  return {others, others, others * block, others == 0 ? block : 2 * others * block};
}

}  // namespace waywiser::collective::reduce_scatter
