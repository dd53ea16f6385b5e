#include "waywiser/collective/extents.hpp"
#include "waywiser/collective/scatter/scatter.hpp"
#include "waywiser/collective/schedule_maker.hpp"

namespace waywiser::collective::scatter {

Schedule direct(const CollectiveCall& call) {
  ScheduleMaker maker("direct", call);
  const Extents blocks(call);
  const Block own = output(blocks.count(call.rank));
  if (call.rank != call.root) {
    maker.receive(0, call.root, own);
    return maker.finish();
  }
  maker.copy(0, own, blocks.block(Area::input, call.rank));
  for (int rank = 0; rank < call.ranks; ++rank)
    if (rank != call.root) maker.send(0, rank, blocks.block(Area::input, rank));
  return maker.finish();
}

CollectiveCost direct_cost(const CollectiveCall& call) {
  const auto others = static_cast<std::uint64_t>(call.ranks) - 1;
  return {others == 0 ? 0u : 1u, others, others * Extents(call).largest()};
}

}  // namespace waywiser::collective::scatter
