#include "waywiser/collective/barrier/barrier.hpp"
#include "waywiser/collective/extents.hpp"
#include "waywiser/collective/schedule_maker.hpp"

namespace waywiser::collective::barrier {

Schedule dissemination(const CollectiveCall& call) {
  ScheduleMaker maker("dissemination", call);
  const Block sent = maker.allocate(call.ranks > 1 ? 1 : 0);
  std::uint32_t round = 0;
  for (int distance = 1; distance < call.ranks; distance *= 2, ++round) {
    maker.send(round, wrap(call.rank + distance, call.ranks), sent);
    maker.receive(round, wrap(call.rank - distance, call.ranks), maker.allocate(1));
  }
  return maker.finish();
}

CollectiveCost dissemination_cost(const CollectiveCall& call) {
  const auto levels = static_cast<std::uint64_t>(log2_ceil(call.ranks));
  return {levels, levels, levels};
}

}  // namespace waywiser::collective::barrier
