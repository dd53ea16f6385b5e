#include "waywiser/collective/all_gather/all_gather.hpp"
#include "waywiser/collective/extents.hpp"
#include "waywiser/collective/schedule_maker.hpp"

namespace waywiser::collective::all_gather {

Schedule direct(const CollectiveCall& call) {
  ScheduleMaker maker("direct", call);
  const int n = call.ranks, rank = call.rank;
  const Extents blocks(call);
  const Block mine = input(blocks.count(rank));
  maker.copy(0, blocks.block(Area::output, rank), mine);
  for (int distance = 1; distance < n; ++distance) {
    const int from = wrap(rank - distance, n);
    maker.send(0, wrap(rank + distance, n), mine);
    maker.receive(0, from, blocks.block(Area::output, from));
  }
  return maker.finish();
}

CollectiveCost direct_cost(const CollectiveCall& call) {
  const auto others = static_cast<std::uint64_t>(call.ranks) - 1;
  return {others == 0 ? 0u : 1u, others, others * Extents(call).largest()};
}

}  // namespace waywiser::collective::all_gather
