#include "waywiser/collective/all_reduce/all_reduce.hpp"
#include "waywiser/collective/extents.hpp"
#include "waywiser/collective/schedule_maker.hpp"

namespace waywiser::collective::all_reduce {

Schedule one_shot(const CollectiveCall& call) {
  ScheduleMaker maker("one_shot", call);
  const std::size_t count = call.count;
  if (call.ranks == 1) {
    maker.copy(0, output(count), input(count));
    return maker.finish();
  }
  const Block landed = maker.allocate(count * static_cast<std::size_t>(call.ranks));
  const auto slot = [&](int rank) { return scratch(landed.offset + static_cast<std::size_t>(rank) * count, count); };
  maker.copy(0, slot(call.rank), input(count));
  for (int distance = 1; distance < call.ranks; ++distance) {
    const int to = wrap(call.rank + distance, call.ranks), from = wrap(call.rank - distance, call.ranks);
    maker.send(0, to, input(count));
    maker.receive(0, from, slot(from));
  }
  maker.copy(1, output(count), slot(0));
  maker.reduce_in_order(2, output(count), slot(1), call.ranks - 1);
  return maker.finish();
}

CollectiveCost one_shot_cost(const CollectiveCall& call) {
  const auto others = static_cast<std::uint64_t>(call.ranks) - 1;
  return {others == 0 ? 0u : 1u, others, others * call.count, (others == 0 ? 1 : others + 2) * call.count};
}

}  // namespace waywiser::collective::all_reduce
