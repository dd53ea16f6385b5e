#pragma once

#include "waywiser/collective/extents.hpp"
#include "waywiser/collective/schedule_maker.hpp"

namespace waywiser::collective::all_to_all {

// Where the blocks of one rank come from and go to.
class PairwiseExchange {
 public:
  // Copies the input away in round 0 where it is the output too, and this rank's own block; sends begin in round 1
  // then.
  PairwiseExchange(ScheduleMaker& maker, const CollectiveCall& call);

  Block to(int rank) const;
  Block from(int rank) const { return received_.block(Area::output, rank); }
  std::uint32_t first_round() const { return in_place_ ? 1 : 0; }

 private:
  Extents sent_, received_;
  bool in_place_;
};

}  // namespace waywiser::collective::all_to_all
