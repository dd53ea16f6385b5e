#include "waywiser/collective/all_to_all/all_to_all.hpp"
#include "waywiser/collective/all_to_all/exchange.hpp"

namespace waywiser::collective::all_to_all {

Schedule direct(const CollectiveCall& call) {
  ScheduleMaker maker("direct", call);
  const PairwiseExchange exchange(maker, call);
  for (int distance = 1; distance < call.ranks; ++distance) {
    const int to = wrap(call.rank + distance, call.ranks), from = wrap(call.rank - distance, call.ranks);
    maker.send(exchange.first_round(), to, exchange.to(to));
    maker.receive(exchange.first_round(), from, exchange.from(from));
  }
  return maker.finish();
}

CollectiveCost direct_cost(const CollectiveCall& call) {
  const auto others = static_cast<std::uint64_t>(call.ranks) - 1;
  return {others == 0 ? 0u : 1u, others, others * Extents(call).largest()};
}

}  // namespace waywiser::collective::all_to_all
