#include "waywiser/collective/all_to_all/exchange.hpp"

namespace waywiser::collective::all_to_all {

PairwiseExchange::PairwiseExchange(ScheduleMaker& maker, const CollectiveCall& call)
    : sent_(call), received_(call.counts.empty() ? sent_ : Extents(call.receive_counts)), in_place_(call.in_place) {
  if (in_place_) maker.copy(0, maker.allocate(sent_.total()), input(sent_.total()));
  const Block own = to(call.rank);
  maker.copy(first_round(), {Area::output, from(call.rank).offset, own.count}, own);
}

Block PairwiseExchange::to(int rank) const { return sent_.block(in_place_ ? Area::scratch : Area::input, rank); }

}  // namespace waywiser::collective::all_to_all
