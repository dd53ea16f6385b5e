#include "waywiser/collective/extents.hpp"
#include "waywiser/collective/scan/scan.hpp"
#include "waywiser/collective/schedule_maker.hpp"

namespace waywiser::collective::scan {

// `sum` is of up to 2^i ranks that end with this one. What has come is added a round later, since `sum` is sent
// meanwhile. The input, which may be the output, is read in round 0 only.
Schedule recursive_doubling(const CollectiveCall& call) {
  ScheduleMaker maker("recursive_doubling", call);
  const bool excludes = call.operation == Collective::exscan;
  const int n = call.ranks, rank = call.rank;
  const bool sends_sums = rank > 0 && rank + 2 < n;
  Block sum = input(call.count);
  if (excludes && sends_sums) sum = maker.allocate(call.count);
  if (!excludes && rank > 0) sum = output(call.count);
  if (!excludes || sends_sums) maker.copy(0, excludes ? sum : output(call.count), input(call.count));
  const Block came = rank > 0 ? maker.allocate(call.count) : Block{};
  std::uint32_t round = 0;
  for (int distance = 1; distance < n; distance *= 2, round += 2) {
    if (rank + distance < n) maker.send(round, rank + distance, distance == 1 ? input(call.count) : sum);
    if (rank < distance) continue;
    maker.receive(round, rank - distance, came);
    if (!excludes || rank + 2 * distance < n) maker.reduce(round + 1, sum, came);
    if (excludes && distance == 1) maker.copy(round + 1, output(call.count), came);
    if (excludes && distance > 1) maker.reduce(round + 1, output(call.count), came);
  }
  return maker.finish();
}

CollectiveCost recursive_doubling_cost(const CollectiveCall& call) {
  const auto levels = static_cast<std::uint64_t>(log2_ceil(call.ranks));
  return {levels, levels, levels * call.count};
}

}  // namespace waywiser::collective::scan
