#include "waywiser/collective/binomial.hpp"
#include "waywiser/collective/broadcast/broadcast.hpp"
#include "waywiser/collective/schedule_maker.hpp"

namespace waywiser::collective::broadcast {

// Parts belong to places. The root has all parts: the ring sends it nothing.
Schedule scatter_all_gather(const CollectiveCall& call) {
  ScheduleMaker maker("scatter_all_gather", call);
  const Binomial tree(call);
  const int n = tree.ranks, place = tree.place;
  const Extents parts(call.count, n);
  const Area source = place == 0 ? Area::input : Area::output;
  const auto round_of = [&](int bit) { return static_cast<std::uint32_t>(tree.levels() - 1 - log2_floor(bit)); };
  const auto below = [&](Area area, int at, int width) { return parts.range(area, at, tree.end_of(at, width)); };
  if (place == 0)
    maker.copy(0, output(call.count), input(call.count));
  else
    maker.receive(round_of(tree.span()), tree.rank_at(place - tree.span()), below(Area::output, place, tree.span()));
  for (int bit = tree.span() / 2; bit > 0; bit /= 2)
    if (place + bit < n) maker.send(round_of(bit), tree.rank_at(place + bit), below(source, place + bit, bit));
  for (int step = 0; step + 1 < n; ++step) {
    const auto round = static_cast<std::uint32_t>(tree.levels() + step);
    if (place + 1 < n) maker.send(round, tree.rank_at(place + 1), parts.block(source, wrap(place - step, n)));
    if (place > 0) maker.receive(round, tree.rank_at(place - 1), parts.block(Area::output, wrap(place - step - 1, n)));
  }
  return maker.finish();
}

CollectiveCost scatter_all_gather_cost(const CollectiveCall& call) {
  const auto n = static_cast<std::uint64_t>(call.ranks);
  const std::uint64_t messages = static_cast<std::uint64_t>(log2_ceil(call.ranks)) + n - 1;
  return {messages, messages, 2 * (n - 1) * divide_up(call.count, n)};
}

}  // namespace waywiser::collective::broadcast
