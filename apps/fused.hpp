#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>
#include <waywiser/group/group.hpp>

#include "apps/exchange.hpp"
#include "apps/fused_heap.hpp"
#include "apps/fused_step.hpp"
#include "apps/grid.hpp"
#include "apps/parallel.hpp"
#ifdef APPS_NVSHMEM
#include "apps/nvshmem_memory.cuh"
#endif

namespace apps {

// Two arrays of cells that kernels of other ranks reach, of which steps read one and write the other in turn.
template <typename T, int dimensions>
class FusedField {
 public:
  FusedField(waywiser::Group& group, Processor& processor, const waywiser::HaloGrid& grid, int components = 1,
             bool planar = false, bool corners = false)
      : group_(group),
        processor_(processor),
        bytes_(largest_array(grid) * static_cast<std::uint64_t>(components)),
        parcel_(corners ? 0 : largest_face(grid) * static_cast<std::uint64_t>(components)) {
    terms_.packed = !corners;
    terms_.parcel = parcel_;
    terms_.components = components;
    terms_.planar = planar;
    terms_.cells = cells_of(grid, group.rank());
    const waywiser::GridBox& box = grid.boxes[static_cast<std::size_t>(group.rank())];
    std::ranges::copy(box.count, terms_.count);
    std::ranges::copy(strides_of(grid, group.rank()), terms_.stride);
    const CellParts parts = beside_others(grid, group.rank());
    terms_.inner = fused_box(parts.inner);
    for (const CellBox& each : parts.outer) terms_.outer[terms_.parts++] = fused_box(each);
    int directions = 1;
    for (int i = 0; i < dimensions; ++i) directions *= 3;
    for (const bool far : {true, false})
      for (int code = 0; code < directions; ++code) {
        FusedSide side = side_of(grid, group.rank(), code, directions);
        int apart = 0;
        for (const int each : side.direction) apart += each != 0;
        if (side.rank < 0 || apart == 0 || (apart > 1 && !corners) || (side.rank != group.rank()) != far) continue;
        if (terms_.sides == most_sides) refuse("more than " + std::to_string(most_sides) + " neighbours");
        set_parcels(side);
        terms_.side[terms_.sides++] = side;
        terms_.far_sides += far ? 1 : 0;
      }
    terms_.edge_blocks = edge_blocks_of(grid, group.rank());
  }

  // Collective: a way that is fused, each with arrays of its own. Throws unavailable at all ranks, where stores do not
  // reach a rank as well.
  void use([[maybe_unused]] const Way& way) {
    const waywiser::Bytes bytes = fused_arrays + 2 * bytes_ + 4 * dimensions * parcel_;
#ifdef APPS_NVSHMEM
    by_nvshmem_ = way.kind == Way::Kind::nvshmem;
    if (by_nvshmem_) {
      if (!nvshmem_) nvshmem_.emplace(group_, processor_, bytes);
      return;
    }
#endif
    if (!heap_) heap_.emplace(group_, processor_, bytes);
  }

  // As kernels of this rank reach them.
  T* array(int which) const {
    T* array = nullptr;
    with_memory([&](const auto& memory) { array = reinterpret_cast<T*>(memory.local() + offset(which)); });
    return array;
  }
  // Puts the outermost cells of array 0, which is there, into the neighbours' ghosts. All ranks have ended their steps.
  void begin() { run(0, ComputesNothing{}, false, true); }
  // A step that writes this array.
  template <typename Cell>
  void step(int written, Cell cell) {
    run(written, cell, true, true);
  }
  // The two halves of one: one writes this array and puts, one waits for the ghosts. Between a wait and the next put
  // the ranks meet, or the puts write the two arrays in turn.
  template <typename Cell>
  void put_step(int written, Cell cell) {
    run(written, cell, false, true);
  }
  template <typename Cell>
  void wait_step(Cell cell) {
    run(0, cell, true, false);
  }
  // Waits for the steps. Throws if one of their waits has not ended in time; check(): of steps that are over.
  void wait() {
    with_memory([](auto& memory) { memory.wait(); });
  }
  void check() {
    with_memory([](auto& memory) { memory.check(); });
  }

 private:
#if defined(__CUDACC__)
  static constexpr unsigned threads = fused_threads;
  static constexpr std::int64_t most_edge_blocks = 2048, most_blocks = 1 << 16;
  static constexpr std::int64_t cells_of_long_threads = 1 << 20;  // as of loops
#else
  static constexpr unsigned threads = 4;  // one host thread runs one block after the other
  static constexpr std::int64_t most_edge_blocks = 2, most_blocks = 3, cells_of_long_threads = 8;
#endif

  template <typename Cell>
  void run(int written, Cell cell, bool waits, bool puts) {
    FusedStep<T, dimensions, Cell> step{terms_, cell};
    step.terms.rows = terms_.inner.cells < cells_of_long_threads ? 1 : fused_rows<Cell>();
    const FusedTiles tiles(terms_.inner, dimensions, threads, step.terms.rows);
    const unsigned blocks =
        terms_.edge_blocks + static_cast<unsigned>(std::clamp<std::int64_t>(tiles.tiles, 1, most_blocks));
    with_memory([&](auto& memory) {
      step.terms.written = offset(written);
      step.terms.filled = memory.filled;
      if (puts) memory.filled = offset(written);
      step.terms.turn = puts ? memory.turn++ : memory.turn;
      step.terms.waits = waits;
      step.terms.puts = puts;
      memory.launch(blocks, threads, step);
    });
  }
  // f(the memory in use)
  template <typename Function>
  void with_memory(Function f) {
#ifdef APPS_NVSHMEM
    if (by_nvshmem_) return f(*nvshmem_);
#endif
    f(*heap_);
  }
  template <typename Function>
  void with_memory(Function f) const {
#ifdef APPS_NVSHMEM
    if (by_nvshmem_) return f(*nvshmem_);
#endif
    f(*heap_);
  }
  std::uint64_t offset(int which) const { return fused_arrays + static_cast<std::uint64_t>(which) * bytes_; }

  static std::vector<std::int64_t> strides_of(const waywiser::HaloGrid& grid, int rank) {
    const std::vector<std::int64_t> shape = grid.local_shape(rank);
    std::vector<std::int64_t> strides(shape.size(), 1);
    for (std::size_t i = shape.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * shape[i];
    return strides;
  }
  static std::int64_t cells_of(const waywiser::HaloGrid& grid, int rank) {
    return strides_of(grid, rank)[0] * grid.local_shape(rank)[0];
  }
  static std::uint64_t largest_array(const waywiser::HaloGrid& grid) {
    std::int64_t most = 0;
    for (int rank = 0; rank < static_cast<int>(grid.boxes.size()); ++rank) most = std::max(most, cells_of(grid, rank));
    return (static_cast<std::uint64_t>(most) * sizeof(T) + 255) / 256 * 256;
  }
  // The cells beside other ranks, and all others.
  static CellParts beside_others(const waywiser::HaloGrid& grid, int rank) {
    const std::vector<std::int64_t>& count = grid.boxes[static_cast<std::size_t>(rank)].count;
    CellParts parts{{std::vector<std::int64_t>(count.size(), 0), count}, {}};
    for (std::size_t i = 0; i < count.size(); ++i)
      for (const bool up : {false, true}) {
        const int peer = rank_beside(grid, rank, i, up);
        if (peer < 0 || peer == rank || parts.inner.count[i] == 0) continue;
        CellBox face = parts.inner;
        if (up) face.first[i] += face.count[i] - 1;
        face.count[i] = 1;
        parts.outer.push_back(face);
        if (!up) ++parts.inner.first[i];
        --parts.inner.count[i];
      }
    std::erase_if(parts.outer, [](const CellBox& part) { return std::ranges::count(part.count, 0) != 0; });
    return parts;
  }
  static unsigned edge_blocks_of(const waywiser::HaloGrid& grid, int rank) {
    std::int64_t cells = 0;
    for (const CellBox& each : beside_others(grid, rank).outer) cells += fused_box(each).cells;
    return static_cast<unsigned>(std::clamp<std::int64_t>((cells + threads - 1) / threads, 1, most_edge_blocks));
  }
  static std::uint64_t largest_face(const waywiser::HaloGrid& grid) {
    std::int64_t most = 0;
    for (const waywiser::GridBox& box : grid.boxes)
      for (const std::int64_t across : box.count) {
        std::int64_t cells = 1;
        for (const std::int64_t each : box.count) cells *= each;
        most = std::max(most, across == 0 ? 0 : cells / across);
      }
    return (static_cast<std::uint64_t>(most) * sizeof(T) + 255) / 256 * 256;
  }
  // Those of a face come where its direction has two.
  void set_parcels(FusedSide& side) const {
    side.face = 1;
    for (int i = 0; i < dimensions; ++i)
      if (side.direction[i] != 0)
        side.dimension = i;
      else
        side.face *= terms_.count[i];
    const auto parcels = [&](int direction) {
      const int number = 2 * side.dimension + (direction > 0 ? 1 : 0);
      return fused_arrays + 2 * bytes_ + static_cast<std::uint64_t>(2 * number) * parcel_;
    };
    side.here = parcels(side.direction[side.dimension]);
    side.there = parcels(-side.direction[side.dimension]);
  }
  static FusedBox fused_box(const CellBox& box) {
    FusedBox made;
    made.cells = 1;
    for (std::size_t i = 0; i < box.count.size(); ++i) {
      made.first[i] = box.first[i];
      made.count[i] = static_cast<std::uint32_t>(box.count[i]);
      made.cells *= box.count[i];
    }
    return made;
  }
  // Directions have a code, its digits to the base of 3; the opposite one has the codes' largest minus it.
  static FusedSide side_of(const waywiser::HaloGrid& grid, int rank, int code, int directions) {
    FusedSide side;
    side.rank = rank;
    int rest = code;
    for (std::size_t i = 0; i < grid.shape.size(); ++i, rest /= 3) {
      side.direction[i] = rest % 3 - 1;
      if (side.direction[i] != 0 && side.rank >= 0) side.rank = rank_beside(grid, side.rank, i, side.direction[i] > 0);
    }
    if (side.rank < 0) return side;
    const std::vector<std::int64_t> strides = strides_of(grid, side.rank);
    const std::vector<std::int64_t>& count = grid.boxes[static_cast<std::size_t>(side.rank)].count;
    std::ranges::copy(strides, side.stride);
    for (std::size_t i = 0; i < strides.size(); ++i)
      if (side.direction[i] < 0) side.first += (count[i] + 1) * strides[i];
    side.cells = cells_of(grid, side.rank);
    side.blocks = edge_blocks_of(grid, side.rank);
    side.heard = fused_words * static_cast<std::uint64_t>(code + 1);
    side.told = fused_words * static_cast<std::uint64_t>(directions - code);
    return side;
  }

  waywiser::Group& group_;
  Processor& processor_;
  std::uint64_t bytes_, parcel_;
  FusedTerms terms_;
  std::optional<FusedHeap> heap_;  // once it is in use
#ifdef APPS_NVSHMEM
  std::optional<NvshmemMemory> nvshmem_;
  bool by_nvshmem_ = false;
#endif
};

}  // namespace apps
