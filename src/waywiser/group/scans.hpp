#pragma once

#include <cstdint>
#include <span>

#include "waywiser/group/group.hpp"

// Reductions that depend on ranks, beside those of Group; the hosts carry them out.
namespace waywiser {

// Each rank's output: the reduction of its own input and of those of all lower ranks. Throws as Group::all_reduce;
// invalid_input also for avg. The last bits of a floating-point sum depend on the algorithm.
[[gnu::visibility("default")]] Future scan(Group& group, ConstElements input, Elements output,
                                           ReduceOp op = ReduceOp::sum, Mode mode = Mode::wait);
// The same of the lower ranks only. Rank 0's output is not touched and may be empty.
[[gnu::visibility("default")]] Future exscan(Group& group, ConstElements input, Elements output,
                                             ReduceOp op = ReduceOp::sum, Mode mode = Mode::wait);
[[nodiscard]] inline Future scan(Group& group, ConstElements input, Elements output, ReduceOp op, BeginMode mode) {
  return scan(group, input, output, op, Mode(mode));
}
[[nodiscard]] inline Future exscan(Group& group, ConstElements input, Elements output, ReduceOp op, BeginMode mode) {
  return exscan(group, input, output, op, Mode(mode));
}

// For each element the least (greatest) value of all ranks, and the location that its rank gave for it; of ranks with
// equal values the lowest location. `values` and `found` may be the same array, as may the locations; all in host
// memory, else it throws unavailable. Throws as Group::all_reduce, whose order of -0, 0 and NaN it has.
[[gnu::visibility("default")]] void minloc(Group& group, ConstElements values, std::span<const std::int64_t> locations,
                                           Elements found, std::span<std::int64_t> found_at);
[[gnu::visibility("default")]] void maxloc(Group& group, ConstElements values, std::span<const std::int64_t> locations,
                                           Elements found, std::span<std::int64_t> found_at);

}  // namespace waywiser
