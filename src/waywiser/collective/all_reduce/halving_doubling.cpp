#include "waywiser/collective/all_reduce/all_reduce.hpp"
#include "waywiser/collective/extents.hpp"
#include "waywiser/collective/folding.hpp"
#include "waywiser/collective/schedule_maker.hpp"

namespace waywiser::collective::all_reduce {

Schedule halving_doubling(const CollectiveCall& call) {
  ScheduleMaker maker("halving_doubling", call);
  const Folding folding(call.ranks);
  const int rank = call.rank;
  const Block all = output(call.count);
  const std::uint32_t last = 2 + 2 * static_cast<std::uint32_t>(folding.levels());
  if (!folding.takes_part(rank)) {
    maker.send(1, rank + 1, input(call.count));
    maker.receive(last, rank + 1, all);
    return maker.finish();
  }
  maker.copy(0, all, input(call.count));
  if (folding.in_pair(rank)) maker.receive_reduce(1, rank - 1, all);
  const Extents parts(call.count, folding.power);
  const int place = folding.place(rank);
  // The parts with the same place at this distance: this rank's, and the peer's.
  const auto half = [&](int distance, int at) {
    const int first = at / distance * distance;
    return parts.range(Area::output, first, first + distance);
  };
  std::uint32_t round = 2;
  for (int distance = folding.power / 2; distance > 0; distance /= 2, ++round) {
    const int peer = place ^ distance;
    maker.send(round, folding.rank_at(peer), half(distance, peer));
    maker.receive_reduce(round, folding.rank_at(peer), half(distance, place));
  }
  for (int distance = 1; distance < folding.power; distance *= 2, ++round) {
    const int peer = place ^ distance;
    maker.send(round, folding.rank_at(peer), half(distance, place));
    maker.receive(round, folding.rank_at(peer), half(distance, peer));
  }
  if (folding.in_pair(rank)) maker.send(last, rank - 1, all);
  return maker.finish();
}

CollectiveCost halving_doubling_cost(const CollectiveCall& call) {
  const Folding folding(call.ranks);
  const auto levels = static_cast<std::uint64_t>(folding.levels());
  const auto power = static_cast<std::uint64_t>(folding.power);
  const std::uint64_t folded = folding.pairs == 0 ? 0 : 1;
  return {2 * (levels + folded), 2 * levels + folded,
          2 * (power - 1) * divide_up(call.count, power) + folded * call.count,
          (1 + folded) * call.count + (power - 1) * divide_up(call.count, power)};
}

}  // namespace waywiser::collective::all_reduce
