#include "waywiser/collective/all_reduce/all_reduce.hpp"
#include "waywiser/collective/extents.hpp"
#include "waywiser/collective/schedule_maker.hpp"

namespace waywiser::collective::all_reduce {

Schedule ring(const CollectiveCall& call) {
  ScheduleMaker maker("ring", call);
  const int n = call.ranks, rank = call.rank;
  const Extents parts(call.count, n);
  const auto part = [&](int index) { return parts.block(Area::output, wrap(index, n)); };
  const int next = wrap(rank + 1, n), previous = wrap(rank - 1, n);
  std::uint32_t round = 0;
  maker.copy(round++, output(call.count), input(call.count));
  for (int step = 0; step + 1 < n; ++step, ++round) {
    maker.send(round, next, part(rank - step));
    maker.receive_reduce(round, previous, part(rank - step - 1));
  }
  for (int step = 0; step + 1 < n; ++step, ++round) {
    maker.send(round, next, part(rank + 1 - step));
    maker.receive(round, previous, part(rank - step));
  }
  return maker.finish();
}

CollectiveCost ring_cost(const CollectiveCall& call) {
  const auto n = static_cast<std::uint64_t>(call.ranks);
  return {2 * (n - 1), 2 * (n - 1), 2 * (n - 1) * divide_up(call.count, n),
          call.count + (n - 1) * divide_up(call.count, n)};
}

}  // namespace waywiser::collective::all_reduce
