#include "waywiser/collective/all_gather/all_gather.hpp"
#include "waywiser/collective/extents.hpp"
#include "waywiser/collective/schedule_maker.hpp"

namespace waywiser::collective::all_gather {

Schedule recursive_doubling(const CollectiveCall& call) {
  ScheduleMaker maker("recursive_doubling", call);
  const Extents blocks(call);
  const auto held = [&](int rank, int distance) {
    const int first = rank / distance * distance;
    return blocks.range(Area::output, first, first + distance);
  };
  std::uint32_t round = 0;
  maker.copy(round++, blocks.block(Area::output, call.rank), input(blocks.count(call.rank)));
  for (int distance = 1; distance < call.ranks; distance *= 2, ++round) {
    const int peer = call.rank ^ distance;
    maker.send(round, peer, held(call.rank, distance));
    maker.receive(round, peer, held(peer, distance));
  }
  return maker.finish();
}

CollectiveCost recursive_doubling_cost(const CollectiveCall& call) {
  const auto levels = static_cast<std::uint64_t>(log2_ceil(call.ranks));
  return {levels, levels, (static_cast<std::uint64_t>(call.ranks) - 1) * Extents(call).largest()};
}

std::optional<std::string> why_not_recursive_doubling(const CollectiveCall& call) {
  if (1 << log2_floor(call.ranks) == call.ranks) return {};
  return std::to_string(call.ranks) + " ranks are not a power of two";
}

}  // namespace waywiser::collective::all_gather
