#include "waywiser/collective/extents.hpp"
#include "waywiser/collective/gather/gather.hpp"
#include "waywiser/collective/schedule_maker.hpp"

namespace waywiser::collective::gather {

Schedule direct(const CollectiveCall& call) {
  ScheduleMaker maker("direct", call);
  const Extents blocks(call);
  const Block own = input(blocks.count(call.rank));
  if (call.rank != call.root) {
    maker.send(0, call.root, own);
    return maker.finish();
  }
  maker.copy(0, blocks.block(Area::output, call.rank), own);
  for (int rank = 0; rank < call.ranks; ++rank)
    if (rank != call.root) maker.receive(0, rank, blocks.block(Area::output, rank));
  return maker.finish();
}

CollectiveCost direct_cost(const CollectiveCall& call) {
  const auto others = static_cast<std::uint64_t>(call.ranks) - 1;
  return {others == 0 ? 0u : 1u, others, others * Extents(call).largest()};
}

}  // namespace waywiser::collective::gather
