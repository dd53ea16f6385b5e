#include "waywiser/collective/extents.hpp"
#include "waywiser/collective/reduce/reduce.hpp"
#include "waywiser/collective/schedule_maker.hpp"

namespace waywiser::collective::reduce {

Schedule direct(const CollectiveCall& call) {
  ScheduleMaker maker("direct", call);
  if (call.rank != call.root) {
    maker.send(0, call.root, input(call.count));
    return maker.finish();
  }
  Block slot = maker.allocate(call.count * static_cast<std::size_t>(call.ranks - 1));
  slot.count = call.count;
  const Block first = slot;
  maker.copy(0, output(call.count), input(call.count));
  for (int distance = 1; distance < call.ranks; ++distance, slot.offset += slot.count)
    maker.receive(0, wrap(call.root + distance, call.ranks), slot);
  maker.reduce_in_order(1, output(call.count), first, call.ranks - 1);
  return maker.finish();
}

CollectiveCost direct_cost(const CollectiveCall& call) {
  const auto others = static_cast<std::uint64_t>(call.ranks) - 1;
  return {others == 0 ? 0u : 1u, others, others * call.count, (others + 1) * call.count};
}

}  // namespace waywiser::collective::reduce
