#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "waywiser/base/units.hpp"

namespace waywiser {

// Pieces that have gone to one rank by one way.
struct WayCounts {
  std::string
      way;  // within a machine `lane`, `copies` or `ucx`; between machines a path of the plan, `ucx`, `encrypted`
  std::uint64_t pieces = 0, bytes = 0;
};

// Pieces with bytes between this rank and another one. The seconds are those in which at least one was under way, as
// this rank has noticed in its turns.
struct PathCounts {
  Seconds seconds_out = 0, seconds_in = 0;
  std::vector<WayCounts> ways;
};

// What one rank has done.
struct ShuffleCounts {
  struct Peer {
    std::uint64_t rows_out = 0, bytes_out = 0, pieces_out = 0, rows_in = 0, bytes_in = 0, pieces_in = 0;
    PathCounts path;  // none: what stays here
  };
  std::vector<Peer> peers;   // by rank; that of this rank: what stays here
  Bytes most_under_way = 0;  // bytes out and in at one time
  Seconds waited = 0;
  Bytes spilled = 0;  // to files
};

}  // namespace waywiser
