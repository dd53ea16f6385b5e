#include "waywiser/collective/fused/fused_schedules.hpp"

#include <algorithm>

#include "waywiser/base/error.hpp"
#include "waywiser/collective/all_gather/all_gather.hpp"
#include "waywiser/collective/all_reduce/all_reduce.hpp"
#include "waywiser/collective/all_to_all/all_to_all.hpp"
#include "waywiser/collective/extents.hpp"
#include "waywiser/collective/fused/fused_works.hpp"
#include "waywiser/collective/reduce/reduce.hpp"
#include "waywiser/collective/reduce_scatter/reduce_scatter.hpp"
#include "waywiser/collective/schedule_maker.hpp"

namespace waywiser::fused {
namespace {

// Kernels process the whole array at once.
CollectiveCall in_one_piece(CollectiveCall call) {
  call.chunk = std::max<std::size_t>(call.count, 1);
  return call;
}

Schedule broadcast_to_all(const CollectiveCall& call) {
  ScheduleMaker maker("", call);
  if (call.rank != call.root) {
    maker.receive(0, call.root, output(call.count));
    return maker.finish();
  }
  maker.copy(0, output(call.count), input(call.count));
  for (int distance = 1; distance < call.ranks; ++distance)
    maker.send(0, wrap(call.rank + distance, call.ranks), input(call.count));
  return maker.finish();
}

// The root's part i goes to rank i, which sends it to all others but the root.
Schedule broadcast_in_two_shots(const CollectiveCall& call) {
  ScheduleMaker maker("", call);
  const Extents parts(call.count, call.ranks);
  const bool root = call.rank == call.root;
  const Area source = root ? Area::input : Area::output;
  if (root)
    maker.copy(0, output(call.count), input(call.count));
  else
    maker.receive(0, call.root, parts.block(Area::output, call.rank));
  for (int distance = 1; distance < call.ranks; ++distance) {
    const int to = wrap(call.rank + distance, call.ranks), from = wrap(call.rank - distance, call.ranks);
    if (root) maker.send(0, to, parts.block(source, to));
    if (to != call.root) maker.send(1, to, parts.block(source, call.rank));
    if (!root) maker.receive(1, from, parts.block(Area::output, from));
  }
  return maker.finish();
}

// Each rank reduces a part in rank order and sends it to the root.
Schedule reduce_in_two_shots(const CollectiveCall& call) {
  ScheduleMaker maker("", call);
  const Extents parts(call.count, call.ranks);
  const std::size_t mine = parts.count(call.rank);
  const auto part = [&](Area area, int of) { return parts.block(area, of); };
  const Block landed = maker.allocate(mine * static_cast<std::size_t>(call.ranks));
  const auto slot = [&](int of) { return scratch(landed.offset + mine * static_cast<std::size_t>(of), mine); };
  maker.copy(0, slot(call.rank), part(Area::input, call.rank));
  for (int distance = 1; distance < call.ranks; ++distance) {
    const int to = wrap(call.rank + distance, call.ranks), from = wrap(call.rank - distance, call.ranks);
    maker.send(0, to, part(Area::input, to));
    maker.receive(0, from, slot(from));
  }
  const std::uint32_t reduced = maker.reduce_in_order(1, slot(0), slot(1), call.ranks - 1);
  const auto last = static_cast<std::uint32_t>(call.ranks);
  if (call.rank != call.root) {
    maker.send(last, call.root, slot(0));
    return maker.finish();
  }
  maker.copy(reduced, part(Area::output, call.rank), slot(0));
  for (int from = 0; from < call.ranks; ++from)
    if (from != call.rank) maker.receive(last, from, part(Area::output, from));
  return maker.finish();
}

Schedule of_one_shot(const CollectiveCall& call) {
  switch (call.operation) {
    case Collective::all_reduce: return collective::all_reduce::one_shot(call);
    case Collective::reduce: return collective::reduce::direct(call);
    case Collective::reduce_scatter: return collective::reduce_scatter::direct(call);
    case Collective::all_gather: return collective::all_gather::direct(call);
    case Collective::all_to_all: return collective::all_to_all::direct(call);
    case Collective::broadcast: return broadcast_to_all(call);
    default: break;
  }
  throw Error(ErrorKind::unavailable, *why_no_kernel(call));
}

Schedule named(Schedule schedule, std::string_view name) {
  schedule.algorithm = name;
  return schedule;
}

}  // namespace

Schedule one_shot_of(std::string_view name, const CollectiveCall& call) { return named(of_one_shot(call), name); }

CollectiveCost one_shot_cost_of(const CollectiveCall& call) {
  const auto others = static_cast<std::uint64_t>(call.ranks - 1);
  switch (call.operation) {
    case Collective::all_reduce: return collective::all_reduce::one_shot_cost(call);
    case Collective::reduce: return collective::reduce::direct_cost(call);
    case Collective::reduce_scatter: return collective::reduce_scatter::direct_cost(call);
    case Collective::all_gather: return collective::all_gather::direct_cost(call);
    case Collective::all_to_all: return collective::all_to_all::direct_cost(call);
    default: return {others == 0 ? 0U : 1U, others, others * call.count};
  }
}

Schedule two_shot_of(std::string_view name, const CollectiveCall& call) {
  const CollectiveCall whole = in_one_piece(call);
  if (call.operation == Collective::all_reduce) return named(collective::all_reduce::two_shot(whole), name);
  return named(call.operation == Collective::reduce ? reduce_in_two_shots(whole) : broadcast_in_two_shots(whole), name);
}

CollectiveCost two_shot_cost_of(const CollectiveCall& call) {
  if (call.operation == Collective::all_reduce) return collective::all_reduce::two_shot_cost(in_one_piece(call));
  const auto n = static_cast<std::uint64_t>(call.ranks);
  if (call.operation == Collective::broadcast)
    return {n == 1 ? 0U : 2U, 2 * (n - 1), 2 * (n - 1) * divide_up(call.count, n)};
  return {n == 1 ? 0U : 2U, 2 * (n - 1), 2 * (n - 1) * divide_up(call.count, n), call.count + divide_up(call.count, n)};
}

std::optional<std::string> why_not_fused(const CollectiveCall& call) {
  if (const auto why = why_no_kernel(call)) return why;
  if (call.ranks < 2 || call.ranks > static_cast<int>(block::max_ranks))
    return "fused kernels are for 2 to 8 ranks, the group has " + std::to_string(call.ranks);
  if (std::ranges::any_of(call.machine_of, [&](int machine) { return machine != call.machine_of.front(); }))
    return "the group's ranks are on several machines";
  return {};
}

}  // namespace waywiser::fused
