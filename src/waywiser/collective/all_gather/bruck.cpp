#include <algorithm>
#include <array>

#include "waywiser/collective/all_gather/all_gather.hpp"
#include "waywiser/collective/extents.hpp"
#include "waywiser/collective/schedule_maker.hpp"

namespace waywiser::collective::all_gather {
namespace {

// Blocks first, ..., first + many - 1 modulo n in the output: two pieces if they wrap around.
std::array<Block, 2> pieces(const Extents& blocks, int first, int many) {
  const int n = blocks.parts();
  const int end = std::min(first + many, n);
  return {blocks.range(Area::output, first, end), blocks.range(Area::output, 0, first + many - end)};
}

}  // namespace

Schedule bruck(const CollectiveCall& call) {
  ScheduleMaker maker("bruck", call);
  const int n = call.ranks, rank = call.rank;
  const Extents blocks(call);
  std::uint32_t round = 0;
  maker.copy(round++, blocks.block(Area::output, rank), input(blocks.count(rank)));
  for (int distance = 1; distance < n; distance *= 2, ++round) {
    const int many = std::min(distance, n - distance);
    const int to = wrap(rank - distance, n), from = wrap(rank + distance, n);
    for (const Block& piece : pieces(blocks, rank, many)) maker.send(round, to, piece);
    for (const Block& piece : pieces(blocks, from, many)) maker.receive(round, from, piece);
  }
  return maker.finish();
}

CollectiveCost bruck_cost(const CollectiveCall& call) {
  const auto levels = static_cast<std::uint64_t>(log2_ceil(call.ranks));
  return {levels, 2 * levels, (static_cast<std::uint64_t>(call.ranks) - 1) * Extents(call).largest()};
}

}  // namespace waywiser::collective::all_gather
