#include "waywiser/collective/all_reduce/all_reduce.hpp"
#include "waywiser/collective/extents.hpp"
#include "waywiser/collective/ranks_by_machine.hpp"
#include "waywiser/collective/schedule_maker.hpp"

namespace waywiser::collective::all_reduce {
namespace {

// Sends part i to the i-th rank of the machine, which reduces it.
void reduce_in_machine(ScheduleMaker& maker, const RanksByMachine& machines, const Extents& parts) {
  const std::vector<int>& ranks = machines.neighbors();
  const bool owner = machines.local < parts.parts();
  const std::size_t mine = owner ? parts.count(machines.local) : 0;
  const auto others = static_cast<int>(ranks.size()) - 1;
  Block slot = maker.allocate(mine * static_cast<std::size_t>(others));
  slot.count = mine;
  const std::size_t first = slot.offset;
  for (int i = 0; i < static_cast<int>(ranks.size()); ++i) {
    const int peer = ranks[static_cast<std::size_t>(i)];
    if (i != machines.local && i < parts.parts()) maker.send(0, peer, parts.block(Area::input, i));
    if (i == machines.local || !owner) continue;
    maker.receive(0, peer, slot);
    slot.offset += mine;
  }
  if (!owner) return;
  maker.copy(0, parts.block(Area::output, machines.local), parts.block(Area::input, machines.local));
  maker.reduce_in_order(1, parts.block(Area::output, machines.local), scratch(first, mine), others);
}

// A ring of the ranks with the same index in their machines.
void ring_of_machines(ScheduleMaker& maker, const RanksByMachine& machines, Block block, std::uint32_t round) {
  const int m = machines.count(), mine = machines.mine;
  const Extents parts(block.count, m);
  const auto part = [&](int index) {
    const int at = wrap(index, m);
    return parts.range(Area::output, at, at + 1, block.offset);
  };
  const auto peer = [&](int machine) {
    return machines.ranks[static_cast<std::size_t>(wrap(machine, m))][static_cast<std::size_t>(machines.local)];
  };
  for (int step = 0; step + 1 < m; ++step, ++round) {
    maker.send(round, peer(mine + 1), part(mine - step));
    maker.receive_reduce(round, peer(mine - 1), part(mine - step - 1));
  }
  for (int step = 0; step + 1 < m; ++step, ++round) {
    maker.send(round, peer(mine + 1), part(mine + 1 - step));
    maker.receive(round, peer(mine - 1), part(mine - step));
  }
}

}  // namespace

Schedule hierarchical(const CollectiveCall& call) {
  ScheduleMaker maker("hierarchical", call);
  const RanksByMachine machines(call);
  const Extents parts(call.count, machines.smallest());
  reduce_in_machine(maker, machines, parts);
  const auto between = static_cast<std::uint32_t>(machines.largest());
  const std::uint32_t last = between + 2 * static_cast<std::uint32_t>(machines.count());
  const bool owner = machines.local < parts.parts();
  const Block mine = owner ? parts.block(Area::output, machines.local) : Block{};
  if (owner) ring_of_machines(maker, machines, mine, between);
  const std::vector<int>& ranks = machines.neighbors();
  for (int i = 0; i < static_cast<int>(ranks.size()); ++i) {
    if (i == machines.local) continue;
    const int peer = ranks[static_cast<std::size_t>(i)];
    maker.send(last, peer, mine);
    if (i < parts.parts()) maker.receive(last, peer, parts.block(Area::output, i));
  }
  return maker.finish();
}

CollectiveCost hierarchical_cost(const CollectiveCall& call) {
  const RanksByMachine machines(call);
  const auto m = static_cast<std::uint64_t>(machines.count());
  const auto g = static_cast<std::uint64_t>(machines.smallest());
  const auto h = static_cast<std::uint64_t>(machines.largest());
  return {2 * (m - 1) + (h > 1 ? 2 : 0), g + h - 2 + 2 * (m - 1),
          (g + h - 2) * divide_up(call.count, g) + 2 * (m - 1) * divide_up(call.count, g * m),
          h * divide_up(call.count, g) + (m - 1) * divide_up(call.count, g * m)};
}

std::optional<std::string> why_not_hierarchical(const CollectiveCall& call) { return why_one_machine(call); }

}  // namespace waywiser::collective::all_reduce
