#pragma once

#include <algorithm>

#include "waywiser/collective/extents.hpp"
#include "waywiser/policy/defaults.hpp"

namespace waywiser {

// Where nothing was measured: enough pieces to fill the pipeline, none too short.
// How many pieces of `call.chunk` elements `count` is cut into, at least one.
inline int pieces_of(const CollectiveCall& call, std::size_t count) {
  const std::size_t chunk =
      call.chunk != 0 ? call.chunk : std::max<std::size_t>(defaults::pipeline_piece, count / defaults::pipeline_pieces);
  return static_cast<int>(std::clamp<std::size_t>((count + chunk - 1) / chunk, 1, 4096));
}

// One tree's or chain's share of a buffer, and its pieces.
struct Share {
  Extents pieces;
  std::size_t from = 0;

  Block piece(Area area, int index) const { return pieces.range(area, index, index + 1, from); }
};

}  // namespace waywiser
