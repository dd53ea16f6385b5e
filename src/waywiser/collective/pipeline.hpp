#pragma once

#include <algorithm>

#include "waywiser/collective/extents.hpp"
#include "waywiser/policy/defaults.hpp"

namespace waywiser {

// The number of pieces of `call.chunk` elements in `count`, at least one. Without a measurement: enough pieces to fill
// the pipeline, none too short.
inline int pieces_of(const CollectiveCall& call, std::size_t count) {
  const std::size_t chunk =
      call.chunk != 0 ? call.chunk : std::max<std::size_t>(defaults::pipeline_piece, count / defaults::pipeline_pieces);
  return static_cast<int>(std::clamp<std::size_t>((count + chunk - 1) / chunk, 1, 4096));
}

// The part of a buffer that one tree or chain carries, and its pieces.
struct Share {
  Extents pieces;
  std::size_t from = 0;

  Block piece(Area area, int index) const { return pieces.range(area, index, index + 1, from); }
};

}  // namespace waywiser
