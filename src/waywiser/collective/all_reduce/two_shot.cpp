#include "waywiser/collective/all_reduce/all_reduce.hpp"
#include "waywiser/collective/extents.hpp"
#include "waywiser/collective/schedule_maker.hpp"

namespace waywiser::collective::all_reduce {

Schedule two_shot(const CollectiveCall& call) {
  ScheduleMaker maker("two_shot", call);
  const int n = call.ranks, rank = call.rank;
  const Extents parts(call.count, n);
  const Block mine = parts.block(Area::output, rank);
  const Block landed = maker.allocate(mine.count * static_cast<std::size_t>(n - 1));
  maker.copy(0, mine, parts.block(Area::input, rank));
  for (int distance = 1; distance < n; ++distance) {
    const int to = wrap(rank + distance, n), from = wrap(rank - distance, n);
    maker.send(0, to, parts.block(Area::input, to));
    maker.receive(0, from, scratch(landed.offset + static_cast<std::size_t>(distance - 1) * mine.count, mine.count));
  }
  maker.reduce_in_order(1, mine, scratch(landed.offset, mine.count), n - 1);
  const auto second = static_cast<std::uint32_t>(n);
  for (int distance = 1; distance < n; ++distance) {
    const int to = wrap(rank + distance, n), from = wrap(rank - distance, n);
    maker.send(second, to, mine);
    maker.receive(second, from, parts.block(Area::output, from));
  }
  return maker.finish();
}

CollectiveCost two_shot_cost(const CollectiveCall& call) {
  const auto n = static_cast<std::uint64_t>(call.ranks);
  return {n == 1 ? 0u : 2u, 2 * (n - 1), 2 * (n - 1) * divide_up(call.count, n)};
}

}  // namespace waywiser::collective::all_reduce
