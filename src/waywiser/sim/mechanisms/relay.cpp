#include "waywiser/sim/models.hpp"
#include "waywiser/transport/split/split.hpp"

// relay: two legs of peer copies through a third GPU's memory, in chunks: the pipeline of host_staged over other hops.
// split: several ways at once, each with its share of the bytes; it is over when the slowest of them is:
//   T(n) = max over ways i of T_i(share_i n).

namespace waywiser::sim {

Program relay_program(const TimedTransfer& transfer) {
  const Spot via{transfer.from.node, std::string(transfer.path.parameter("via"))};
  Program program;
  program.cpu = transfer.cpu();
  program.issue = transfer.cost("staged.issue");
  program.issue_chunk = transfer.cost("staged.issue_chunk");
  program.chunk = transfer.path.bytes("chunk", 4096, Bytes{1} << 30);
  program.depth = static_cast<int>(transfer.path.integer("depth", 1, 64));
  program.legs.push_back(engine_leg(transfer, transfer.from, via));
  program.legs.push_back(engine_leg(transfer, via, transfer.to));
  program.finish = transfer.cost("staged.finish");
  program.in_turn = true;
  return program;
}

Program split_program(const TimedTransfer& transfer) {
  const std::vector<Path> ways = split_ways(transfer.path.whole());
  const std::vector<Bytes> bytes = split_bytes(split_percents(transfer.path.whole(), ways.size()), transfer.bytes);
  Program program;
  for (const char* name : {"ways", "share"}) transfer.path.hand_on(name);
  for (std::size_t i = 0; i < ways.size(); ++i) {
    transfer.path.hand_on(std::to_string(i + 1) + ".");
    if (i > 0 && bytes[i] == 0) continue;
    program.parts.push_back(
        sim::program({transfer.world, ways[i], transfer.from, transfer.to, bytes[i], transfer.lane, transfer.slots}));
    program.parts.back().share = bytes[i];
    if (i == 0) program.parts.back().issue += transfer.cost("split.issue");
  }
  return program;
}

}  // namespace waywiser::sim
