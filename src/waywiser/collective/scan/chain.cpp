#include "waywiser/collective/pipeline.hpp"
#include "waywiser/collective/scan/scan.hpp"
#include "waywiser/collective/schedule_maker.hpp"

namespace waywiser::collective::scan {

// A piece takes two rounds at each rank: it comes, then it is added to this rank's. An exscan keeps what has come apart
// from the sum that goes on. The input, which may be the output, is read in round 0 only, except at rank 0.
Schedule chain(const CollectiveCall& call) {
  ScheduleMaker maker("chain", call);
  const bool excludes = call.operation == Collective::exscan;
  const int n = call.ranks, rank = call.rank;
  const bool goes_on = rank + 1 < n;
  const Extents pieces(call.count, pieces_of(call, call.count));
  const Block sums = excludes && rank > 0 && goes_on ? maker.allocate(call.count) : output(call.count);
  if (!excludes || sums.area == Area::scratch) maker.copy(0, sums, input(call.count));
  const Block came = rank > 0 ? maker.allocate(call.count) : Block{};
  for (int piece = 0; piece < pieces.parts(); ++piece) {
    const auto sent = static_cast<std::uint32_t>(2 * (rank + piece));
    const auto of = [&](const Block& whole) { return pieces.range(whole.area, piece, piece + 1, whole.offset); };
    if (goes_on) maker.send(sent, rank + 1, of(rank == 0 ? input(call.count) : sums));
    if (rank == 0) continue;
    maker.receive(sent - 2, rank - 1, of(came));
    if (!excludes || goes_on) maker.reduce(sent - 1, of(sums), of(came));
    if (excludes) maker.copy(sent - 1, of(output(call.count)), of(came));
  }
  return maker.finish();
}

CollectiveCost chain_cost(const CollectiveCall& call) {
  if (call.ranks == 1) return {};
  const auto pieces = static_cast<std::uint64_t>(pieces_of(call, call.count));
  return {static_cast<std::uint64_t>(call.ranks) + pieces - 2, pieces, call.count};
}

}  // namespace waywiser::collective::scan
