#include <algorithm>

#include "waywiser/collective/extents.hpp"
#include "waywiser/collective/folding.hpp"
#include "waywiser/collective/reduce_scatter/reduce_scatter.hpp"
#include "waywiser/collective/schedule_maker.hpp"

namespace waywiser::collective::reduce_scatter {
namespace {

// The blocks of all ranks that each place represents.
Extents merged(const Extents& blocks, const Folding& folding) {
  std::vector<std::size_t> counts;
  for (int place = 0; place < folding.power; ++place) {
    const int rank = folding.rank_at(place);
    counts.push_back(blocks.count(rank) + (place < folding.pairs ? blocks.count(rank - 1) : 0));
  }
  return Extents(counts);
}

}  // namespace

Schedule recursive_halving(const CollectiveCall& call) {
  ScheduleMaker maker("recursive_halving", call);
  const Folding folding(call.ranks);
  const Extents blocks(call);
  const int rank = call.rank;
  const std::uint32_t last = 2 + static_cast<std::uint32_t>(folding.levels());
  if (!folding.takes_part(rank)) {
    maker.send(1, rank + 1, input(blocks.total()));
    maker.receive(last, rank + 1, output(blocks.count(rank)));
    return maker.finish();
  }
  const Block sum = maker.allocate(blocks.total());
  maker.copy(0, sum, input(blocks.total()));
  if (folding.in_pair(rank)) maker.receive_reduce(1, rank - 1, sum);
  const Extents parts = merged(blocks, folding);
  const int place = folding.place(rank);
  std::uint32_t round = 2;
  for (int distance = folding.power / 2; distance > 0; distance /= 2, ++round) {
    const int peer = place ^ distance;
    const int keep = place / distance * distance, give = peer / distance * distance;
    maker.send(round, folding.rank_at(peer), parts.range(Area::scratch, give, give + distance));
    maker.receive_reduce(round, folding.rank_at(peer), parts.range(Area::scratch, keep, keep + distance));
  }
  if (folding.in_pair(rank)) maker.send(last, rank - 1, blocks.block(Area::scratch, rank - 1));
  maker.copy(last, output(blocks.count(rank)), blocks.block(Area::scratch, rank));
  return maker.finish();
}

CollectiveCost recursive_halving_cost(const CollectiveCall& call) {
  const Folding folding(call.ranks);
  const auto levels = static_cast<std::uint64_t>(folding.levels());
  const std::uint64_t folded = folding.pairs == 0 ? 0 : 1;
  const auto n = static_cast<std::uint64_t>(call.ranks), block = static_cast<std::uint64_t>(Extents(call).largest());
  std::uint64_t received = folded * n;  // blocks at place 0, which keeps the first ones: those of pairs count twice
  for (int kept = folding.power / 2; kept > 0; kept /= 2)
    received += static_cast<std::uint64_t>(kept + std::min(kept, folding.pairs));
  return {levels + 2 * folded, levels + folded, received * block, (n + received + 1) * block};
}

}  // namespace waywiser::collective::reduce_scatter
