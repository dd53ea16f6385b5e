#include <algorithm>

#include "waywiser/collective/all_reduce/all_reduce.hpp"
#include "waywiser/collective/extents.hpp"
#include "waywiser/collective/pipeline.hpp"
#include "waywiser/collective/schedule_maker.hpp"
#include "waywiser/policy/defaults.hpp"

namespace waywiser::collective::all_reduce {
namespace {

int pieces(const CollectiveCall& call) {
  const auto n = static_cast<std::size_t>(call.ranks);
  CollectiveCall cut = call;
  if (cut.chunk == 0) cut.chunk = defaults::two_shot_piece;
  return pieces_of(cut, (call.count + n - 1) / n);
}

}  // namespace

// Piece i is exchanged in round i, reduced with one rank's part after another in the next n - 1 rounds, and sent to all
// in round i + n: n pieces are in flight.
Schedule two_shot(const CollectiveCall& call) {
  ScheduleMaker maker("two_shot", call);
  const int n = call.ranks, rank = call.rank, last = pieces(call);
  const Extents parts(call.count, n);
  const auto part = [&](Area area, int of, int index) {
    const Block all = parts.block(area, of);
    return Extents(all.count, last).range(area, index, index + 1, all.offset);
  };
  const std::size_t most = Extents(parts.count(rank), last).largest();
  const auto others = static_cast<std::size_t>(n - 1);
  const Block landed = maker.allocate(most * others * static_cast<std::size_t>(std::min(last, n)));
  const auto slot = [&](int index, int distance) {
    const auto at = static_cast<std::size_t>(index % n) * others + static_cast<std::size_t>(distance - 1);
    return scratch(landed.offset + at * most, part(Area::output, rank, index).count);
  };
  for (int round = 0; round < last + n; ++round) {
    const auto now = static_cast<std::uint32_t>(round);
    if (round < last) maker.copy(now, part(Area::output, rank, round), part(Area::input, rank, round));
    for (int distance = 1; distance < n; ++distance) {
      const int to = wrap(rank + distance, n), from = wrap(rank - distance, n);
      const int reduced = round - distance, complete = round - n;
      if (round < last) {
        maker.send(now, to, part(Area::input, to, round));
        maker.receive(now, from, slot(round, distance));
      }
      if (reduced >= 0 && reduced < last) maker.reduce(now, part(Area::output, rank, reduced), slot(reduced, distance));
      if (complete < 0) continue;
      maker.send(now, to, part(Area::output, rank, complete));
      maker.receive(now, from, part(Area::output, from, complete));
    }
  }
  return maker.finish();
}

CollectiveCost two_shot_cost(const CollectiveCall& call) {
  const auto n = static_cast<std::uint64_t>(call.ranks);
  const auto cut = static_cast<std::uint64_t>(pieces(call));
  return {n == 1 ? 0 : cut + std::min(cut, n), 2 * (n - 1) * cut, 2 * (n - 1) * divide_up(call.count, n), call.count};
}

}  // namespace waywiser::collective::all_reduce
