#include "waywiser/collective/extents.hpp"
#include "waywiser/collective/reduce_scatter/reduce_scatter.hpp"
#include "waywiser/collective/schedule_maker.hpp"

namespace waywiser::collective::reduce_scatter {

Schedule direct(const CollectiveCall& call) {
  ScheduleMaker maker("direct", call);
  const int n = call.ranks, rank = call.rank;
  const Extents blocks(call);
  const std::size_t mine = blocks.count(rank);
  Block slot = maker.allocate(mine * static_cast<std::size_t>(n - 1));
  slot.count = mine;
  const Block first = slot;
  maker.copy(0, output(mine), blocks.block(Area::input, rank));
  for (int distance = 1; distance < n; ++distance, slot.offset += mine) {
    const int to = wrap(rank + distance, n);
    maker.send(0, to, blocks.block(Area::input, to));
    maker.receive(0, wrap(rank - distance, n), slot);
  }
  maker.reduce_in_order(1, output(mine), first, n - 1);
  return maker.finish();
}

CollectiveCost direct_cost(const CollectiveCall& call) {
  const auto others = static_cast<std::uint64_t>(call.ranks) - 1;
  return {others == 0 ? 0u : 1u, others, others * Extents(call).largest(), (others + 1) * Extents(call).largest()};
}

}  // namespace waywiser::collective::reduce_scatter
