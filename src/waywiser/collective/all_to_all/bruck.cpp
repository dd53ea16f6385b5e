#include "waywiser/collective/all_to_all/all_to_all.hpp"
#include "waywiser/collective/extents.hpp"
#include "waywiser/collective/schedule_maker.hpp"

namespace waywiser::collective::all_to_all {
namespace {

constexpr std::uint32_t rounds_a_step = 3;  // pack, exchange, unpack

// The number of distances 0 ... n - 1 with this bit set.
std::size_t with_bit(int n, int bit) {
  std::size_t many = 0;
  for (int distance = 0; distance < n; ++distance) many += (distance & bit) != 0 ? 1 : 0;
  return many;
}

}  // namespace

// Slot d holds the block that has d ranks left to go; blocks received in a step replace the blocks sent.
Schedule bruck(const CollectiveCall& call) {
  ScheduleMaker maker("bruck", call);
  const int n = call.ranks, rank = call.rank;
  const std::size_t size = call.count;
  const auto at = [&](Block area, int index) {
    return Block{area.area, area.offset + static_cast<std::size_t>(index) * size, size};
  };
  const auto whole = static_cast<std::size_t>(n) * size;
  const Block slots = maker.allocate(whole), packed = maker.allocate(whole), arrived = maker.allocate(whole);
  for (int distance = 0; distance < n; ++distance)
    maker.copy(0, at(slots, distance), at(input(0), wrap(rank + distance, n)));
  std::uint32_t round = 1;
  for (int bit = 1; bit < n; bit *= 2, round += rounds_a_step) {
    int index = 0;
    for (int distance = bit; distance < n; ++distance) {
      if ((distance & bit) == 0) continue;
      maker.copy(round, at(packed, index), at(slots, distance));
      maker.copy(round + 2, at(slots, distance), at(arrived, index++));
    }
    const std::size_t moved = with_bit(n, bit) * size;
    maker.send(round + 1, wrap(rank + bit, n), scratch(packed.offset, moved));
    maker.receive(round + 1, wrap(rank - bit, n), scratch(arrived.offset, moved));
  }
  for (int distance = 0; distance < n; ++distance)
    maker.copy(round, at(output(0), wrap(rank - distance, n)), at(slots, distance));
  return maker.finish();
}

CollectiveCost bruck_cost(const CollectiveCall& call) {
  const auto levels = static_cast<std::uint64_t>(log2_ceil(call.ranks));
  std::uint64_t blocks = 0;
  for (int bit = 1; bit < call.ranks; bit *= 2) blocks += with_bit(call.ranks, bit);
  return {levels, levels, blocks * call.count};
}

std::optional<std::string> why_not_bruck(const CollectiveCall& call) {
  if (call.counts.empty()) return {};
  return "the blocks may differ in size";
}

}  // namespace waywiser::collective::all_to_all
