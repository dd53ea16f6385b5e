#pragma once

#include "waywiser/collective/extents.hpp"
#include "waywiser/collective/schedule_maker.hpp"

namespace waywiser::collective::all_to_all {

// The source and destination of each block of one rank.
class PairwiseExchange {
 public:
  // If the output is also the input, round 0 copies the input away, and sends begin in round 1. Also copies this rank's
  // own block.
  PairwiseExchange(ScheduleMaker& maker, const CollectiveCall& call);

  Block to(int rank) const;
  Block from(int rank) const { return received_.block(Area::output, rank); }
  std::uint32_t first_round() const { return in_place_ ? 1 : 0; }

 private:
  Extents sent_, received_;
  bool in_place_;
};

}  // namespace waywiser::collective::all_to_all
