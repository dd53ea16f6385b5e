#include "waywiser/collective/neighbor_exchange/array_exchange.hpp"

#include <algorithm>
#include <string>

#include "waywiser/base/error.hpp"

namespace waywiser::collective::neighbor_exchange {
namespace {

struct TaggedBlock {
  int peer = 0, tag = 0;
  Block block;
};

Block block_of(Schedule& schedule, const ArrayPart& part, ArrayUse use) {
  Block block{Area::array, part.offset, part.count, static_cast<std::uint32_t>(schedule.arrays.size()), 0};
  schedule.arrays.push_back({part.type, part.array_count, use});
  if (part.apart) {
    schedule.layouts.push_back(part.layout);
    block.layout = static_cast<std::uint32_t>(schedule.layouts.size());
  }
  return block;
}

// The blocks exchanged with one rank, in the order in which the other side has them too.
std::vector<Block> with(int peer, const std::vector<TaggedBlock>& all) {
  std::vector<Block> blocks;
  for (const TaggedBlock& each : all)
    if (each.peer == peer && each.block.count != 0) blocks.push_back(each.block);
  return blocks;
}

}  // namespace

// Ordered by distance, so that not all ranks send to the same rank at once.
Schedule of_arrays(int rank, int ranks, std::span<const ArrayExchange> neighbors) {
  Schedule schedule{"exchange", rank, ranks, 0, 0, 0, {}, {}, {}};
  std::vector<TaggedBlock> given, taken;
  for (const ArrayExchange& each : neighbors) {
    if (each.peer < 0 || each.peer >= ranks)
      throw Error(ErrorKind::invalid_input, "an exchange with rank " + std::to_string(each.peer) + ": there are " +
                                                std::to_string(ranks) + " ranks");
    given.push_back({each.peer, each.give_tag, block_of(schedule, each.give, ArrayUse::given)});
    taken.push_back({each.peer, each.take_tag, block_of(schedule, each.take, ArrayUse::taken)});
  }
  std::ranges::stable_sort(given, {}, &TaggedBlock::tag);
  std::ranges::stable_sort(taken, {}, &TaggedBlock::tag);
  const std::vector<Block> own_given = with(rank, given), own_taken = with(rank, taken);
  if (own_given.size() != own_taken.size())
    throw Error(ErrorKind::invalid_input, "an exchange: not as much given to this rank itself as taken from it");
  for (std::size_t i = 0; i < own_given.size(); ++i)
    schedule.steps.push_back({StepKind::copy, 0, -1, own_taken[i], own_given[i]});
  for (int distance = 1; distance < ranks; ++distance) {
    const int to = (rank + distance) % ranks, from = (rank + ranks - distance) % ranks;
    for (const Block& block : with(to, given)) schedule.steps.push_back({StepKind::send, 0, to, {}, block});
    for (const Block& block : with(from, taken)) schedule.steps.push_back({StepKind::receive, 0, from, block, {}});
  }
  return schedule;
}

}  // namespace waywiser::collective::neighbor_exchange
