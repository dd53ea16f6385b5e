#include "waywiser/halo/partition.hpp"

#include <algorithm>
#include <string>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

struct CellRun {
  std::size_t first = 0, end = 0;
  int peer = 0;
  bool taken = false;
};

[[noreturn]] void refuse_partition(const std::string& why) {
  throw Error(ErrorKind::invalid_input, "a partition: " + why);
}

std::string words(const CellRun& run) {
  return (run.taken ? "taken from rank " : "given to rank ") + std::to_string(run.peer);
}

void add_runs(std::vector<CellRun>& runs, const HaloPartition& partition, const HaloSide& side, bool taken) {
  const auto add = [&](std::size_t first, std::size_t count) {
    if (count > partition.cells || first > partition.cells - count)
      refuse_partition("cell " + std::to_string(first + count - 1) + " of " + std::to_string(partition.cells) + " is " +
                       words({first, first, side.peer, taken}));
    if (count != 0) runs.push_back({first, first + count, side.peer, taken});
  };
  const ArrayPart& cells = side.cells;
  if (!cells.apart) return add(cells.offset, cells.count);
  for (std::size_t run = 0; run < cells.layout.runs(); ++run)
    add(cells.offset + cells.layout.run_at(run), cells.layout.run);
}

// A cell may be given to several ranks; one that is taken appears once.
void check_apart(std::vector<CellRun> runs) {
  std::ranges::stable_sort(runs, {}, &CellRun::first);
  const CellRun *given = nullptr, *taken = nullptr;  // the earlier runs that reach farthest
  for (const CellRun& each : runs) {
    for (const CellRun* before : {taken, each.taken ? given : nullptr})
      if (before != nullptr && before->end > each.first)
        refuse_partition("cell " + std::to_string(each.first) + " is " + words(*before) + " and " + words(each));
    const CellRun*& farthest = each.taken ? taken : given;
    if (farthest == nullptr || each.end > farthest->end) farthest = &each;
  }
}

std::vector<std::size_t> own_counts(const HaloPartition& partition, const std::vector<HaloSide>& sides) {
  std::vector<std::size_t> counts;
  for (const HaloSide& side : sides)
    if (side.peer == partition.rank && side.cells.count != 0) counts.push_back(side.cells.count);
  return counts;
}

// Contiguous if the list ascends by one.
ArrayPart listed_cells(std::span<const std::int64_t> list, std::size_t cells, int peer) {
  for (const std::int64_t cell : list)
    if (cell < 0 || static_cast<std::size_t>(cell) >= cells)
      refuse_partition("cell " + std::to_string(cell) + " in a list of rank " + std::to_string(peer) + ": there are " +
                       std::to_string(cells));
  if (std::ranges::adjacent_find(list, [](std::int64_t a, std::int64_t b) { return b != a + 1; }) == list.end())
    return {DataType::uint8, cells, list.empty() ? 0 : static_cast<std::size_t>(list.front()), list.size(), {}, false};
  return ArrayPart::indexed(DataType::uint8, cells, list, 1);
}

}  // namespace

HaloPartition listed_partition(int rank, int ranks, std::size_t cells, std::span<const HaloLists> neighbors) {
  HaloPartition partition{rank, ranks, cells, {}, {}};
  for (const HaloLists& each : neighbors) {
    partition.gives.push_back({each.peer, listed_cells(each.give, cells, each.peer), {}});
    partition.takes.push_back({each.peer, listed_cells(each.take, cells, each.peer), {}});
  }
  check_partition(partition);
  return partition;
}

void check_partition(const HaloPartition& partition) {
  if (partition.rank < 0 || partition.rank >= partition.ranks)
    refuse_partition("rank " + std::to_string(partition.rank) + " of " + std::to_string(partition.ranks));
  std::vector<CellRun> runs;
  for (const bool taken : {false, true})
    for (const HaloSide& side : taken ? partition.takes : partition.gives) {
      if (side.peer < 0 || side.peer >= partition.ranks)
        refuse_partition("a neighbour is rank " + std::to_string(side.peer) + ": there are " +
                         std::to_string(partition.ranks) + " ranks");
      add_runs(runs, partition, side, taken);
    }
  check_apart(std::move(runs));
  if (own_counts(partition, partition.gives) != own_counts(partition, partition.takes))
    refuse_partition("this rank does not give itself as many cells as it takes from itself");
}

}  // namespace waywiser
