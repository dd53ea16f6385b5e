#pragma once

#include <algorithm>

#include "waywiser/collective/extents.hpp"

namespace waywiser {

// Default of pipelined algorithms, where nothing was measured: enough pieces to fill the pipeline, none too short.
inline constexpr std::size_t default_pieces = 16, default_piece = 16384;

// How many pieces of `call.chunk` elements `count` is cut into, at least one.
inline int pieces_of(const CollectiveCall& call, std::size_t count) {
  const std::size_t chunk = call.chunk != 0 ? call.chunk : std::max(default_piece, count / default_pieces);
  return static_cast<int>(std::clamp<std::size_t>((count + chunk - 1) / chunk, 1, 4096));
}

// One tree's or chain's share of a buffer, and its pieces.
struct Share {
  Extents pieces;
  std::size_t from = 0;

  Block piece(Area area, int index) const { return pieces.range(area, index, index + 1, from); }
};

}  // namespace waywiser
