#include "waywiser/collective/broadcast/broadcast.hpp"
#include "waywiser/collective/pipeline.hpp"
#include "waywiser/collective/schedule_maker.hpp"

namespace waywiser::collective::broadcast {

Schedule chain(const CollectiveCall& call) {
  ScheduleMaker maker("chain", call);
  const int n = call.ranks, place = wrap(call.rank - call.root, n);
  const Extents pieces(call.count, pieces_of(call, call.count));
  const Area source = place == 0 ? Area::input : Area::output;
  if (place == 0) maker.copy(0, output(call.count), input(call.count));
  for (int piece = 0; piece < pieces.parts(); ++piece) {
    const auto round = static_cast<std::uint32_t>(place + piece);
    if (place > 0) maker.receive(round - 1, wrap(call.rank - 1, n), pieces.block(Area::output, piece));
    if (place + 1 < n) maker.send(round, wrap(call.rank + 1, n), pieces.block(source, piece));
  }
  return maker.finish();
}

CollectiveCost chain_cost(const CollectiveCall& call) {
  if (call.ranks == 1) return {};
  const auto pieces = static_cast<std::uint64_t>(pieces_of(call, call.count));
  return {static_cast<std::uint64_t>(call.ranks) + pieces - 2, pieces, call.count};
}

}  // namespace waywiser::collective::broadcast
