#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>
#include <waywiser/group/group.hpp>
#include <waywiser/halo/grid.hpp>

#include "apps/options.hpp"

namespace apps {

inline std::string text_of(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t side : shape) text += (text.empty() ? "" : " x ") + std::to_string(side);
  return text;
}

// The option `parts`: how many boxes in each dimension, as "2x1"; "auto": as few cells on cuts as possible. Throws
// invalid_input unless each rank gets one box, of at least `least` cells in each dimension.
inline waywiser::HaloGrid cut(const waywiser::Group& group, const std::vector<std::int64_t>& shape,
                              const std::vector<std::int64_t>& ghost, const std::vector<bool>& periodic,
                              const Options& options, std::int64_t least = 1) {
  std::vector<int> parts = waywiser::ranks_per_dimension(shape, group.size());
  // A group of one rank beside the job's is an undivided grid.
  if (options.text("parts") != "auto" && group.size() > 1) {
    const std::vector<std::int64_t> asked = options.shape("parts", shape.size(), 1, 1 << 20);
    parts.assign(asked.begin(), asked.end());
    if (std::accumulate(asked.begin(), asked.end(), std::int64_t{1}, std::multiplies<>()) != group.size())
      refuse("--parts '" + options.text("parts") + "': not as many as the " + std::to_string(group.size()) + " ranks");
  }
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (shape[i] / parts[i] < least)
      refuse(std::to_string(shape[i]) + " cells in " + std::to_string(parts[i]) + " parts: each has at least " +
             std::to_string(least));
  return waywiser::even_grid(shape, ghost, periodic, parts);
}

// The rank whose box lies beside that of a rank, below or above in a dimension; -1 beyond a border.
inline int rank_beside(const waywiser::HaloGrid& grid, int rank, std::size_t dimension, bool up) {
  const waywiser::GridBox& box = grid.boxes[static_cast<std::size_t>(rank)];
  const std::int64_t side = grid.shape[dimension], end = box.first[dimension] + box.count[dimension];
  for (std::size_t peer = 0; peer < grid.boxes.size(); ++peer) {
    waywiser::GridBox there = grid.boxes[peer];
    const std::int64_t meets = up ? there.first[dimension] : there.first[dimension] + there.count[dimension];
    const std::int64_t mine = up ? end : box.first[dimension];
    const bool adjacent = meets == mine || (grid.periodic[dimension] && (meets - mine == side || mine - meets == side));
    there.first[dimension] = box.first[dimension];
    if (adjacent && there.first == box.first) return static_cast<int>(peer);
  }
  return -1;
}

// As waywiser::grid_partition(), but faces only: ghosts at edges and corners stay as they are, which is enough for
// operators that reach along one dimension at a time. The ghosts are one cell wide; the grid is even_grid()'s.
inline waywiser::HaloPartition face_partition(const waywiser::HaloGrid& grid, int rank) {
  const waywiser::GridBox& box = grid.boxes[static_cast<std::size_t>(rank)];
  const std::vector<std::int64_t> shape = grid.local_shape(rank);
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t i = shape.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * shape[i];
  waywiser::HaloPartition made{
      rank, static_cast<int>(grid.boxes.size()), static_cast<std::size_t>(strides[0] * shape[0]), {}, {}};
  // The face that begins with cell `at` of `dimension`, counted with ghosts.
  const auto face = [&](std::size_t dimension, std::int64_t at) {
    std::vector<std::int64_t> counts = box.count;
    counts[dimension] = 1;
    std::int64_t offset = at * strides[dimension];
    for (std::size_t i = 0; i < shape.size(); ++i) offset += i == dimension ? 0 : strides[i];
    waywiser::ArrayPart part = waywiser::ArrayPart::box(waywiser::DataType::uint8, counts, strides);
    part.array_count = made.cells;
    part.offset = static_cast<std::size_t>(offset);
    return part;
  };
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const int down = rank_beside(grid, rank, i, false), up = rank_beside(grid, rank, i, true);
    // In this order what is given matches what is taken, also between two ranks that meet on both sides.
    if (down >= 0) made.gives.push_back({down, face(i, 1)});
    if (up >= 0) made.gives.push_back({up, face(i, box.count[i])});
    if (up >= 0) made.takes.push_back({up, face(i, box.count[i] + 1)});
    if (down >= 0) made.takes.push_back({down, face(i, 0)});
  }
  return made;
}

// A part of a rank's cells; counted without ghosts.
struct CellBox {
  std::vector<std::int64_t> first, count;
};

// The cells of a box that need no ghost, and the others.
struct CellParts {
  CellBox inner;               // may be empty
  std::vector<CellBox> outer;  // none is empty
};

inline CellParts inner_and_outer(const std::vector<std::int64_t>& count) {
  CellParts parts{{std::vector<std::int64_t>(count.size(), 0), count}, {}};
  for (std::size_t i = 0; i < count.size(); ++i) {
    CellBox low = parts.inner, high = parts.inner;
    low.count[i] = 1;
    high.first[i] = count[i] - 1;
    high.count[i] = count[i] > 1 ? 1 : 0;
    parts.outer.push_back(low);
    parts.outer.push_back(high);
    parts.inner.first[i] = 1;
    parts.inner.count[i] = std::max<std::int64_t>(0, count[i] - 2);
  }
  std::erase_if(parts.outer, [](const CellBox& part) { return std::ranges::count(part.count, 0) != 0; });
  return parts;
}

// Loops behind an exchange that they do not overlap with are one loop over all cells.
template <typename Processor>
CellParts parts_for(const std::vector<std::int64_t>& count) {
  if (Processor::overlaps) return inner_and_outer(count);
  return {{std::vector<std::int64_t>(count.size(), 0), std::vector<std::int64_t>(count.size(), 0)},
          {{std::vector<std::int64_t>(count.size(), 0), count}}};
}

// Of the values of a whole grid, those of a box.
template <typename T>
std::vector<T> part_of(const std::vector<T>& whole, const std::vector<std::int64_t>& shape,
                       const waywiser::GridBox& box, std::int64_t components = 1) {
  std::vector<T> part;
  std::vector<std::int64_t> at(shape.size(), 0);
  const std::int64_t run = box.count.back() * components;
  const std::int64_t cells = std::accumulate(box.count.begin(), box.count.end(), std::int64_t{1}, std::multiplies<>());
  for (std::int64_t runs = cells / std::max<std::int64_t>(1, box.count.back()); runs > 0; --runs) {
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < shape.size(); ++i) offset = offset * shape[i] + box.first[i] + at[i];
    part.insert(part.end(), whole.begin() + offset * components, whole.begin() + offset * components + run);
    for (std::size_t i = shape.size() - 1; i-- > 0 && ++at[i] == box.count[i];) at[i] = 0;
  }
  return part;
}

}  // namespace apps
