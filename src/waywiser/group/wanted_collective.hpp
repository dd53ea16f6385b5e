#pragma once

#include <string_view>

#include "waywiser/collective/group_core.hpp"

namespace waywiser {

// A collective without lists of counts, as a program asks for it.
struct WantedCollective {
  Collective operation = Collective::barrier;
  ConstElements input;  // broadcast: not used
  Elements output;
  ReduceOp op = ReduceOp::sum;
  int root = -1;  // of an operation without a root: any
};

// How many elements the arrays of a rank have, if the ranks compare `count`; 0: it uses none.
struct ArrayCounts {
  std::size_t input = 0, output = 0;
};
struct RankOfCall {
  int rank = 0, ranks = 1, root = -1;
};
ArrayCounts array_counts(Collective operation, std::size_t count, const RankOfCall& at);
// The same by name; of what is no collective `count` each, since all ranks refuse it together.
ArrayCounts array_counts(std::string_view operation, std::size_t count, const RankOfCall& at);

// Checks the arguments, then takes the call's number. Leaves the arrays that this rank uses. Throws invalid_input.
CollectiveCall numbered(GroupCore& core, WantedCollective& wanted);

// Throws invalid_input if the arrays share memory as the call does not allow. `copies`: an all_to_all whose arrays are
// the same reads a copy.
void check_shared(const CollectiveCall& call, ConstElements input, Elements output, bool copies);

// Throws invalid_input for what is no collective of arrays.
Collective parse_prepared(std::string_view operation);

}  // namespace waywiser
