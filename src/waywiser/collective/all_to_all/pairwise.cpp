#include "waywiser/collective/all_to_all/all_to_all.hpp"
#include "waywiser/collective/all_to_all/exchange.hpp"

namespace waywiser::collective::all_to_all {

Schedule pairwise(const CollectiveCall& call) {
  ScheduleMaker maker("pairwise", call);
  const PairwiseExchange exchange(maker, call);
  for (int distance = 1; distance < call.ranks; ++distance) {
    const auto round = exchange.first_round() + static_cast<std::uint32_t>(distance) - 1;
    const int to = wrap(call.rank + distance, call.ranks), from = wrap(call.rank - distance, call.ranks);
    maker.send(round, to, exchange.to(to));
    maker.receive(round, from, exchange.from(from));
  }
  return maker.finish();
}

CollectiveCost pairwise_cost(const CollectiveCall& call) {
  const auto others = static_cast<std::uint64_t>(call.ranks) - 1;
  return {others, others, others * Extents(call).largest()};
}

}  // namespace waywiser::collective::all_to_all
