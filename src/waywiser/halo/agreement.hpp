#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "waywiser/comm/schedule.hpp"
#include "waywiser/halo/partition.hpp"

namespace waywiser {

class Group;
struct HaloGrid;

// All are collective, and throw the same at all ranks.

// Throws invalid_input if a rank has another value than rank 0: "rank 3 has other WHAT than rank 0".
void require_equal(Group& group, std::uint64_t value, const std::string& what);
// The same of several values, of which every rank has equally many: "rank 3 has another WHAT than rank 0" for the first
// that differs.
struct AgreedValue {
  std::uint64_t value = 0;
  std::string what;
};
void require_equal(Group& group, std::span<const AgreedValue> values);
// What ranks that share the grid must have alike; without boxes those count as equal.
HaloGridMarks marks_of(const HaloGrid& grid);
// Throws invalid_input if a rank has another grid than rank 0, and names what differs.
void require_same_grid(Group& group, const HaloGridMarks& grid);
// Throws invalid_input if two ranks' schedules do not match.
void require_matching(Group& group, const Schedule& schedule);
// What each rank says.
std::vector<std::uint64_t> said_by_all(Group& group, std::uint64_t mine);
// `mine`: a word for each side that this rank gives. Returns the givers' words for each side that it takes; 0 for sides
// without cells. Throws invalid_input if the numbers of sides do not match.
std::vector<std::uint8_t> told_by_side(Group& group, const HaloPartition& partition,
                                       std::span<const std::uint8_t> mine);
// The distinct words of all ranks, ascending.
std::vector<std::uint64_t> union_of_all(Group& group, std::span<const std::uint64_t> mine);

}  // namespace waywiser
