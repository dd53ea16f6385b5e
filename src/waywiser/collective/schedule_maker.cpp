#include "waywiser/collective/schedule_maker.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace waywiser {
namespace {

struct Sizes {
  std::size_t in = 0, out = 0;
};

Sizes of_neighbors(const CollectiveCall& call) {
  Sizes sizes;
  for (const Neighbor& neighbor : call.neighbors) {
    sizes.in += neighbor.send;
    sizes.out += neighbor.receive;
  }
  return sizes;
}

std::size_t total(const CollectiveCall& call, const std::vector<std::size_t>& counts) {
  if (counts.empty()) return call.count * static_cast<std::size_t>(call.ranks);
  return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}

Sizes sizes_of(const CollectiveCall& call) {
  const bool at_root = call.rank == call.root;
  const std::size_t own = call.counts.empty() ? call.count : call.counts.at(static_cast<std::size_t>(call.rank));
  const std::size_t all = total(call, call.counts);
  switch (call.operation) {
    case Collective::all_reduce:
    case Collective::scan: return {call.count, call.count};
    case Collective::exscan: return {call.count, call.rank == 0 ? 0 : call.count};
    case Collective::reduce: return {call.count, at_root ? call.count : 0};
    case Collective::broadcast: return {at_root ? call.count : 0, call.count};
    case Collective::reduce_scatter: return {all, own};
    case Collective::all_gather: return {own, all};
    case Collective::gather: return {own, at_root ? all : 0};
    case Collective::scatter: return {at_root ? all : 0, own};
    case Collective::all_to_all: return {all, call.counts.empty() ? all : total(call, call.receive_counts)};
    case Collective::barrier: return {};
    case Collective::neighbor_exchange: return of_neighbors(call);
  }
  return {};
}

}  // namespace

ScheduleMaker::ScheduleMaker(std::string_view algorithm, const CollectiveCall& call) {
  check_call(call);
  const Sizes sizes = sizes_of(call);
  schedule_.algorithm = algorithm;
  schedule_.rank = call.rank;
  schedule_.ranks = call.ranks;
  schedule_.input_count = sizes.in;
  schedule_.output_count = sizes.out;
}

void ScheduleMaker::add(const Step& step) {
  if (step.source.count + step.destination.count != 0) schedule_.steps.push_back(step);
}

void ScheduleMaker::send(std::uint32_t round, int peer, Block source) {
  add({StepKind::send, round, peer, {}, source});
}

void ScheduleMaker::receive(std::uint32_t round, int peer, Block destination) {
  add({StepKind::receive, round, peer, destination, {}});
}

void ScheduleMaker::receive_reduce(std::uint32_t round, int peer, Block destination) {
  add({StepKind::receive_reduce, round, peer, destination, {}});
}

void ScheduleMaker::copy(std::uint32_t round, Block destination, Block source) {
  add({StepKind::copy, round, -1, destination, source});
}

void ScheduleMaker::reduce(std::uint32_t round, Block destination, Block source) {
  add({StepKind::reduce, round, -1, destination, source});
}

std::uint32_t ScheduleMaker::reduce_in_order(std::uint32_t round, Block destination, Block first, int parts) {
  for (int part = 0; part < parts; ++part, first.offset += first.count) reduce(round++, destination, first);
  return round;
}

Block ScheduleMaker::allocate(std::size_t count) {
  const Block block{Area::scratch, schedule_.scratch_count, count};
  schedule_.scratch_count += count;
  return block;
}

Schedule ScheduleMaker::finish() {
  std::ranges::stable_sort(schedule_.steps, {}, &Step::round);
  return std::move(schedule_);
}

}  // namespace waywiser
