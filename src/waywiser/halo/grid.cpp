#include "waywiser/halo/grid.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/base/fingerprint_hash.hpp"
#include "waywiser/halo/agreement.hpp"

namespace waywiser {
namespace {

using Numbers = std::vector<std::int64_t>;

constexpr std::size_t most_dimensions = 4;
constexpr std::int64_t most_cells = std::int64_t{1} << 60;

[[noreturn]] void refuse_grid(const std::string& why) { throw Error(ErrorKind::invalid_input, "a grid: " + why); }

std::int64_t volume(const Numbers& shape) {
  std::int64_t all = 1;
  for (const std::int64_t each : shape)
    if (__builtin_mul_overflow(all, each, &all) || all > most_cells) refuse_grid("more cells than there can be");
  return all;
}

void check_dimensions(const HaloGrid& grid) {
  const std::size_t dimensions = grid.shape.size();
  if (dimensions < 1 || dimensions > most_dimensions)
    refuse_grid(std::to_string(dimensions) + " dimensions: there can be 1 to 4");
  if (grid.ghost.size() != dimensions || grid.periodic.size() != dimensions)
    refuse_grid("ghost and periodic have one entry for each of the " + std::to_string(dimensions) + " dimensions");
  for (const Numbers* each : {&grid.shape, &grid.ghost})
    if (std::ranges::any_of(*each, [](std::int64_t value) { return value < 0 || value > most_cells; }))
      refuse_grid("a shape or ghost width that is below 0 or too large");
  static_cast<void>(volume(grid.shape));
}

bool overlap(const GridBox& a, const GridBox& b) {
  for (std::size_t i = 0; i < a.first.size(); ++i)
    if (a.first[i] + a.count[i] <= b.first[i] || b.first[i] + b.count[i] <= a.first[i]) return false;
  return volume(a.count) != 0 && volume(b.count) != 0;
}

void check_boxes(const HaloGrid& grid) {
  const std::size_t dimensions = grid.shape.size();
  std::int64_t cells = 0;
  for (std::size_t rank = 0; rank < grid.boxes.size(); ++rank) {
    const GridBox& box = grid.boxes[rank];
    const std::string of = "the box of rank " + std::to_string(rank);
    if (box.first.size() != dimensions || box.count.size() != dimensions) refuse_grid(of + " has other dimensions");
    for (std::size_t i = 0; i < dimensions; ++i)
      if (box.first[i] < 0 || box.count[i] < 0 || box.first[i] > grid.shape[i] - box.count[i])
        refuse_grid(of + " lies outside");
    cells += volume(box.count);
    for (std::size_t before = 0; before < rank; ++before)
      if (overlap(grid.boxes[before], box)) refuse_grid(of + " overlaps that of rank " + std::to_string(before));
  }
  if (cells != volume(grid.shape)) refuse_grid("the boxes leave cells out");
}

struct GridInterval {
  std::int64_t first = 0, end = 0;
};

GridInterval common(GridInterval a, GridInterval b) { return {std::max(a.first, b.first), std::min(a.end, b.end)}; }

// One part of the ghosts of `taker` and of the cells of `giver`, which repeat `image` times the grid's shape away.
class GhostImages {
 public:
  GhostImages(const HaloGrid& grid, int taker, int giver)
      : grid_(grid),
        taker_(grid.boxes[static_cast<std::size_t>(taker)]),
        giver_(grid.boxes[static_cast<std::size_t>(giver)]),
        same_(taker == giver) {}

  // Calls f(intervals in the taker's numbers, image) for each part, images in ascending order.
  template <typename Function>
  void for_each(Function f) const {
    if (volume(taker_.count) == 0 || volume(giver_.count) == 0) return;
    std::vector<GridInterval> part(grid_.shape.size());
    Numbers image(grid_.shape.size());
    visit(0, part, image, f);
  }

 private:
  template <typename Function>
  void visit(std::size_t dimension, std::vector<GridInterval>& part, Numbers& image, Function& f) const {
    if (dimension == part.size()) {
      const bool owned = same_ && std::ranges::all_of(image, [](std::int64_t each) { return each == 0; });
      if (!owned) f(part, image);
      return;
    }
    const std::int64_t period = grid_.shape[dimension], width = grid_.ghost[dimension];
    const GridInterval reach{taker_.first[dimension] - width,
                             taker_.first[dimension] + taker_.count[dimension] + width};
    const std::int64_t farthest = grid_.periodic[dimension] ? width / period + 1 : 0;
    for (std::int64_t at = -farthest; at <= farthest; ++at) {
      const std::int64_t first = giver_.first[dimension] + at * period;
      part[dimension] = common(reach, {first, first + giver_.count[dimension]});
      image[dimension] = at;
      if (part[dimension].first < part[dimension].end) visit(dimension + 1, part, image, f);
    }
  }

  const HaloGrid& grid_;
  const GridBox &taker_, &giver_;
  const bool same_;
};

// A box of cells as a part of a rank's array.
class LocalArray {
 public:
  LocalArray(const HaloGrid& grid, int rank)
      : grid_(grid),
        box_(grid.boxes[static_cast<std::size_t>(rank)]),
        shape_(grid.local_shape(rank)),
        strides_(shape_.size(), 1) {
    for (std::size_t i = shape_.size() - 1; i > 0; --i) strides_[i - 1] = strides_[i] * shape_[i];
  }

  std::size_t cells() const { return static_cast<std::size_t>(volume(shape_)); }
  ArrayPart part(const std::vector<GridInterval>& intervals, const Numbers& image) const {
    Numbers counts;
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < intervals.size(); ++i) {
      const std::int64_t moved = image[i] * grid_.shape[i];
      offset += (intervals[i].first - moved - box_.first[i] + grid_.ghost[i]) * strides_[i];
      counts.push_back(intervals[i].end - intervals[i].first);
    }
    ArrayPart part = ArrayPart::box(DataType::uint8, counts, strides_);
    part.array_count = cells();
    part.offset = static_cast<std::size_t>(offset);
    return part;
  }

 private:
  const HaloGrid& grid_;
  const GridBox& box_;
  const Numbers shape_;
  Numbers strides_;
};

std::uint64_t mark_of(std::span<const Numbers> lists) {
  FingerprintHash hash;
  for (const Numbers& each : lists) {
    hash.add(each.size());
    for (const std::int64_t number : each) hash.add(static_cast<std::uint64_t>(number));
  }
  return std::stoull(hash.hexadecimal(), nullptr, 16);
}

// Where a part of a rank's ghosts lies: before its box, behind it, or neither.
std::vector<int> face_of(const GridBox& box, const std::vector<GridInterval>& ghosts) {
  std::vector<int> face;
  for (std::size_t i = 0; i < ghosts.size(); ++i)
    face.push_back(ghosts[i].end <= box.first[i] ? -1 : ghosts[i].first >= box.first[i] + box.count[i] ? 1 : 0);
  return face;
}

// The same as the neighbour sees it.
std::vector<int> opposite(std::vector<int> face) {
  for (int& each : face) each = -each;
  return face;
}

GridInterval even_part(std::int64_t cells, std::int64_t parts, std::int64_t index) {
  const std::int64_t each = cells / parts, more = cells % parts, first = index * each + std::min(index, more);
  return {first, first + each + (index < more ? 1 : 0)};
}

// The cells on the cuts, as a measure of what is exchanged.
double cut_cells(std::span<const std::int64_t> shape, const std::vector<int>& parts) {
  double cells = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    double face = parts[i] - 1;
    for (std::size_t other = 0; other < shape.size(); ++other)
      if (other != i) face *= static_cast<double>(shape[other]);
    cells += face;
  }
  return cells;
}

void try_products(std::span<const std::int64_t> shape, int ranks, std::vector<int>& parts, std::size_t dimension,
                  std::vector<int>& best) {
  if (dimension + 1 == shape.size()) {
    parts[dimension] = ranks;
    if (best.empty() || cut_cells(shape, parts) < cut_cells(shape, best)) best = parts;
    return;
  }
  for (int part = ranks; part >= 1; --part) {
    if (ranks % part != 0) continue;
    parts[dimension] = part;
    try_products(shape, ranks / part, parts, dimension + 1, best);
  }
}

}  // namespace

std::vector<std::int64_t> HaloGrid::local_shape(int rank) const {
  Numbers local = boxes.at(static_cast<std::size_t>(rank)).count;
  for (std::size_t i = 0; i < local.size(); ++i) local[i] += 2 * ghost[i];
  return local;
}

HaloGridMarks marks_of(const HaloGrid& grid) {
  std::vector<Numbers> boxes;
  for (const GridBox& each : grid.boxes) boxes.insert(boxes.end(), {each.first, each.count});
  const Numbers periodic(grid.periodic.begin(), grid.periodic.end());
  return {mark_of({&grid.shape, 1}), mark_of({&grid.ghost, 1}), mark_of({&periodic, 1}), mark_of(boxes)};
}

std::vector<int> ranks_per_dimension(std::span<const std::int64_t> shape, int ranks) {
  if (shape.empty() || ranks < 1) refuse_grid("no dimensions or no ranks");
  std::vector<int> parts(shape.size(), 1), best;
  try_products(shape, ranks, parts, 0, best);
  return best;
}

HaloGrid even_grid(Numbers shape, Numbers ghost, std::vector<bool> periodic, std::span<const int> per_dimension) {
  HaloGrid grid{std::move(shape), std::move(ghost), std::move(periodic), {}};
  check_dimensions(grid);
  if (per_dimension.size() != grid.shape.size() ||
      std::ranges::any_of(per_dimension, [](int parts) { return parts < 1 || parts > 1 << 20; }))
    refuse_grid("the number of parts is at least 1 for each dimension");
  Numbers at(grid.shape.size(), 0);
  const auto ranks = std::accumulate(per_dimension.begin(), per_dimension.end(), std::int64_t{1}, std::multiplies<>());
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    std::int64_t rest = rank;
    GridBox box{Numbers(at.size()), Numbers(at.size())};
    for (std::size_t i = at.size(); i-- > 0; rest /= per_dimension[i]) {
      const GridInterval part = even_part(grid.shape[i], per_dimension[i], rest % per_dimension[i]);
      box.first[i] = part.first;
      box.count[i] = part.end - part.first;
    }
    grid.boxes.push_back(std::move(box));
  }
  return grid;
}

HaloPartition grid_partition(const HaloGrid& grid, int rank) {
  check_dimensions(grid);
  check_boxes(grid);
  const int ranks = static_cast<int>(grid.boxes.size());
  if (rank < 0 || rank >= ranks) refuse_grid("there is no box of rank " + std::to_string(rank));
  const LocalArray local(grid, rank);
  HaloPartition partition{rank, ranks, local.cells(), {}, {}, marks_of(grid)};
  const Numbers here(grid.shape.size(), 0);
  const auto box_of = [&](int of) -> const GridBox& { return grid.boxes[static_cast<std::size_t>(of)]; };
  for (int peer = 0; peer < ranks; ++peer) {
    GhostImages(grid, rank, peer).for_each([&](const std::vector<GridInterval>& part, const Numbers&) {
      partition.takes.push_back({peer, local.part(part, here), face_of(box_of(rank), part)});
    });
    GhostImages(grid, peer, rank).for_each([&](const std::vector<GridInterval>& part, const Numbers& image) {
      partition.gives.push_back({peer, local.part(part, image), opposite(face_of(box_of(peer), part))});
    });
  }
  return partition;
}

}  // namespace waywiser
