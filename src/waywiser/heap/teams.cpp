#include <algorithm>
#include <bit>

#include "waywiser/heap/heap_state.hpp"

namespace waywiser {
namespace {

struct TeamChoice {
  std::int64_t color = 0, key = 0;
  std::uint64_t in_use = 0;
};

}  // namespace

// The slot is free at all ranks: no kernel of theirs uses it, so no store into it is under way.
std::optional<HeapTeam> Heap::split(int color, int key) {
  State& state = held();
  const auto alone = state.alone();
  const std::vector<TeamChoice> choices = heap_gather(state.group, TeamChoice{color, key, state.teams.load()});
  std::uint64_t in_use = 0;
  for (const TeamChoice& each : choices) in_use |= each.in_use;
  const auto slot = static_cast<unsigned>(std::countr_one(in_use));
  if (slot >= one_sided::most_teams)
    throw Error(ErrorKind::unavailable, "heap '" + name() + "' has " + std::to_string(one_sided::most_teams) +
                                            " teams, the most at a time: drop some");
  constexpr Bytes size = sizeof(one_sided::TeamCounters);
  state.clear(state.own.region().slice(state.counters + slot * size, size));
  const Bytes packets = one_sided::team_packets_at(slot), past = one_sided::team_packets_at(slot + 1);
  state.clear(state.own.region().slice(state.counters + packets, past - packets));
  state.group.barrier();
  if (color < 0) return {};
  one_sided::TeamTerms terms;
  terms.slot = slot;
  std::vector<int> order;
  for (int rank = 0; rank < state.group.size(); ++rank)
    if (choices[static_cast<std::size_t>(rank)].color == color) order.push_back(rank);
  std::ranges::stable_sort(order, {}, [&](int rank) { return choices[static_cast<std::size_t>(rank)].key; });
  for (const int rank : order) {
    if (rank == state.group.rank()) terms.rank = terms.size;
    terms.members[terms.size++] = rank;
  }
  state.teams |= std::uint64_t{1} << slot;
  return HeapTeam(state_, terms);
}

std::optional<HeapTeam> Heap::split_strided(int start, int stride, int size) {
  const int ranks = held().group.size();
  const std::int64_t last = start + std::int64_t{stride} * (size - 1);
  if (start < 0 || start >= ranks || stride == 0 || size < 1 || last < 0 || last >= ranks)
    throw Error(ErrorKind::invalid_input, "heap '" + name() + "': a team of " + std::to_string(size) + " ranks from " +
                                              std::to_string(start) + " by " + std::to_string(stride) + ", of " +
                                              std::to_string(ranks));
  const int from_start = held().group.rank() - start, place = from_start / stride;
  const bool member = from_start % stride == 0 && place >= 0 && place < size;
  return split(member ? 0 : -1, place);
}

std::pair<HeapTeam, HeapTeam> Heap::split_2d(int columns) {
  if (columns < 1)
    throw Error(ErrorKind::invalid_input, "heap '" + name() + "': a grid of " + std::to_string(columns) + " columns");
  const int row = held().group.rank() / columns, column = held().group.rank() % columns;
  HeapTeam of_row = *split(row, column);
  return {std::move(of_row), *split(column, row)};
}

HeapTeam Heap::world() { return *split(0); }

HeapTeam::HeapTeam(std::shared_ptr<Heap::State> state, const one_sided::TeamTerms& terms)
    : state_(std::move(state)), terms_(terms) {}
HeapTeam::HeapTeam(HeapTeam&& other) noexcept = default;
HeapTeam& HeapTeam::operator=(HeapTeam&& other) noexcept {
  std::swap(state_, other.state_);
  std::swap(terms_, other.terms_);
  return *this;
}
HeapTeam::~HeapTeam() {
  if (state_) state_->teams &= ~(std::uint64_t{1} << terms_.slot);
}

}  // namespace waywiser
