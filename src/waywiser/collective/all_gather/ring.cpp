#include "waywiser/collective/all_gather/all_gather.hpp"
#include "waywiser/collective/extents.hpp"
#include "waywiser/collective/schedule_maker.hpp"

namespace waywiser::collective::all_gather {

Schedule ring(const CollectiveCall& call) {
  ScheduleMaker maker("ring", call);
  const int n = call.ranks, rank = call.rank;
  const Extents blocks(call);
  const auto block = [&](int index) { return blocks.block(Area::output, wrap(index, n)); };
  maker.copy(0, block(rank), input(blocks.count(rank)));
  for (int step = 0; step + 1 < n; ++step) {
    const auto round = static_cast<std::uint32_t>(step);
    maker.send(round, wrap(rank + 1, n), step == 0 ? input(blocks.count(rank)) : block(rank - step));
    maker.receive(round, wrap(rank - 1, n), block(rank - step - 1));
  }
  return maker.finish();
}

CollectiveCost ring_cost(const CollectiveCall& call) {
  const auto others = static_cast<std::uint64_t>(call.ranks) - 1;
  return {others, others, others * Extents(call).largest()};
}

}  // namespace waywiser::collective::all_gather
