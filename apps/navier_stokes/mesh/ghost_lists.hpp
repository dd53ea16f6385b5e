#pragma once

#include <vector>
#include <waywiser/halo/partition.hpp>

namespace flow {

// The cells that this rank gives to a neighbour, and its ghosts that the neighbour fills, in one order at both.
struct GhostLists {
  int peer = 0;
  std::vector<std::int64_t> give, take;
};

inline waywiser::HaloPartition partition_of(int rank, int ranks, std::int64_t cells,
                                            const std::vector<GhostLists>& neighbors) {
  std::vector<waywiser::HaloLists> lists;
  for (const GhostLists& each : neighbors) lists.push_back({each.peer, each.give, each.take});
  return waywiser::listed_partition(rank, ranks, static_cast<std::size_t>(cells), lists);
}

}  // namespace flow
