#pragma once

#include <cstdint>

#include "apps/fused_heap.hpp"
#include "apps/parallel.hpp"

// Steps on a grid in which one kernel does all: it waits for the neighbours' cells, computes, puts its own outermost
// cells into the neighbours' ghosts and signals. No host takes part between two steps. The ghosts are one cell wide.
// The first blocks take the cells beside other ranks: they wait and put. The other blocks compute meanwhile. None waits
// for a block of the same kernel, so there may be any number of them. If only faces are exchanged, cells travel side by
// side in parcels, and whoever needs a ghost takes it out: a thread its own, since a face's ghost is read for one cell.
// `ranks` are the one-sided calls: HeapCalls (fused_heap.hpp), or NvshmemCalls (nvshmem_memory.cuh).
namespace apps {

constexpr int most_dimensions = 4, most_sides = 8;

struct FusedBox {
  std::int64_t first[most_dimensions] = {}, cells = 0;
  std::uint32_t count[most_dimensions] = {};
};

// A neighbour in a direction, -1, 0 or 1 in each dimension, and where it has the ghosts of the cells on this side.
struct FusedSide {
  int rank = -1, direction[most_dimensions] = {};
  std::int64_t first = 0, stride[most_dimensions] = {}, cells = 0;
  std::uint64_t heard = 0, told = 0;  // offsets: of the word that tells of its cells, and of that which it waits for
  std::uint64_t blocks = 1;           // of it that tell
  int dimension = 0;                  // of a face
  std::int64_t face = 0;              // its cells
  std::uint64_t here = 0, there = 0;  // offsets of the parcels of the face that come, and of those that go
};

struct FusedTerms {
  int parts = 0, sides = 0, far_sides = 0;
  std::int64_t count[most_dimensions] = {}, stride[most_dimensions] = {}, cells = 0;
  int components = 1;  // of a cell: together, or planar: each in an array of all cells
  bool planar = false;
  FusedBox inner, outer[2 * most_dimensions];  // outer: with the cells beside other ranks, each once
  FusedSide side[most_sides];                  // those of other ranks first, then of this one, which needs no signals
  std::uint64_t written = 0, filled = 0;       // offsets: of the array that a step writes, and that of the turn before
  bool packed = false;                         // cells of other ranks come in parcels, not in the ghosts
  std::uint64_t parcel = 0;                    // bytes of one; two of each face take turns
  std::uint64_t turn = 0;                      // signals count turns
  unsigned edge_blocks = 1;
  std::uint32_t rows = 1;  // that a thread takes inside
  bool waits = false;      // for the ghosts of the turn before
  bool puts = false;       // ends a turn
};

constexpr std::uint64_t fused_words = 64, fused_arrays = 8192;  // offsets in the heap

// How many rows a thread takes together at most.
template <typename Cell>
constexpr std::uint32_t fused_rows() {
  if constexpr (requires { Cell::rows_at_once; })
    return Cell::rows_at_once;
  else
    return 1;
}

// For so many blocks a multiprocessor has registers, at least: cells that wait for memory need many threads.
template <typename Cell>
constexpr int fused_blocks() {
  if constexpr (requires { Cell::blocks_at_once; })
    return Cell::blocks_at_once;
  else
    return 0;  // as the compiler likes
}

// How the cells inside are cut: threads stand side by side along the last dimension, as many as there are columns up to
// 64, and in rows of the dimension before it.
struct FusedTiles {
  std::uint32_t wide, high, across, groups_of_plane, tiles = 0;

  APPS_CALLABLE FusedTiles(const FusedBox& box, int dimensions, std::uint32_t threads, std::uint32_t rows_at_once) {
    const std::uint32_t columns = box.count[dimensions - 1], rows = box.count[dimensions - 2];
    wide = columns > 32 ? 64 : 32;
    if (wide > threads) wide = threads;
    high = threads / wide;
    across = (columns + wide - 1) / wide;
    groups_of_plane = (rows + rows_at_once - 1) / rows_at_once;
    std::uint32_t planes = box.cells == 0 ? 0 : 1;
    for (int i = 0; i + 2 < dimensions; ++i) planes *= box.count[i];
    tiles = across * ((planes * groups_of_plane + high - 1) / high);
  }
};

// cell(at) computes the cell with this number in the written array, ghosts included; cell.steady(at) is the same where
// nothing that it reads is written meanwhile. A cell can take its place as well, (place, at): it is counted without
// ghosts. T: a number of a cell.
template <typename T, int dimensions, typename Cell>
struct FusedStep {
  static constexpr int blocks_at_once = fused_blocks<Cell>();
  FusedTerms terms;
  Cell cell;

  template <typename Ranks>
  APPS_CALLABLE void operator()(const Ranks& ranks) const {
    const unsigned block = ranks.gpu().block(), blocks = ranks.gpu().blocks();
    if (block < terms.edge_blocks)
      edges(ranks, block);
    else
      inside(ranks, block - terms.edge_blocks, blocks - terms.edge_blocks);
  }

 private:
  static constexpr std::uint32_t rows_at_once = fused_rows<Cell>();

  template <typename Ranks>
  APPS_CALLABLE void edges(const Ranks& ranks, unsigned block) const {
    using waywiser::one_sided::Scope;
    const auto& gpu = ranks.gpu();
    const auto each_far_side = [&](const auto& f) {
      for (unsigned i = gpu.index_in(Scope::block); i < static_cast<unsigned>(terms.far_sides);
           i += gpu.count_of(Scope::block))
        f(terms.side[i]);
    };
    if (terms.waits)
      each_far_side([&](const FusedSide& side) {
        ranks.hear(ranks.template at<std::uint64_t>(side.heard), terms.turn * side.blocks, side.rank);
      });
    gpu.join(Scope::block);
    const std::int64_t threads = gpu.threads(), step = threads * terms.edge_blocks;
    gpu.each_thread([&](unsigned thread) {
      std::int64_t before = 0, k = block * threads + thread;
      for (int part = 0; part < terms.parts; before += terms.outer[part++].cells)
        for (; k - before < terms.outer[part].cells; k += step)
          edge_cell(ranks, terms.outer[part], static_cast<std::uint32_t>(k - before));
    });
    if (!terms.puts) return;
    gpu.join(Scope::block);
    each_far_side([&](const FusedSide& side) {  // behind all that this block has put
      ranks.tell(ranks.template at<std::uint64_t>(side.told), side.rank);
    });
  }
  template <typename Ranks>
  APPS_CALLABLE void edge_cell(const Ranks& ranks, const FusedBox& box, std::uint32_t k) const {
    std::int64_t place[dimensions] = {}, at = 0;
    WAYWISER_UNROLL
    for (int i = dimensions; i-- > 0; k /= box.count[i]) {
      place[i] = box.first[i] + k % box.count[i];
      at += (place[i] + 1) * terms.stride[i];
    }
    if (terms.packed && terms.waits) take(ranks, place, at);
    if constexpr (requires { cell(place, at); })
      cell(place, at);
    else
      cell(at);
    if (terms.puts) give(ranks, place, at, 0);
  }
  // So many rows further than `place`.
  APPS_CALLABLE void steady_cell(const std::int64_t (&place)[dimensions], std::int64_t at, std::uint32_t rows) const {
    at += rows * terms.stride[dimensions - 2];
    if constexpr (requires { cell.steady(place, at); }) {
      std::int64_t further[dimensions];
      WAYWISER_UNROLL
      for (int i = 0; i < dimensions; ++i) further[i] = place[i];
      further[dimensions - 2] += rows;
      cell.steady(further, at);
    } else {
      cell.steady(at);
    }
  }
  APPS_CALLABLE bool is_on(const FusedSide& side, const std::int64_t (&place)[dimensions]) const {
    bool on_side = true;
    WAYWISER_UNROLL
    for (int j = 0; j < dimensions; ++j)
      if (side.direction[j] != 0) on_side = on_side && place[j] == (side.direction[j] < 0 ? 0 : terms.count[j] - 1);
    return on_side;
  }
  // Which of a face's cells it is.
  APPS_CALLABLE std::int64_t in_face(const FusedSide& side, const std::int64_t (&place)[dimensions]) const {
    std::int64_t found = 0;
    WAYWISER_UNROLL
    for (int j = 0; j < dimensions; ++j)
      if (j != side.dimension) found = found * terms.count[j] + place[j];
    return found;
  }
  // f(in an array of `cells` cells whose cell is number `at`, in one of `others` whose cell is `other`) for each
  // number.
  template <typename Function>
  APPS_CALLABLE void each_component(std::int64_t cells, std::int64_t at, std::int64_t others, std::int64_t other,
                                    Function f) const {
    for (int each = 0; each < terms.components; ++each)
      if (terms.planar)
        f(each * cells + at, each * others + other);
      else
        f(at * terms.components + each, other * terms.components + each);
  }
  // The ghosts of the cell, of the turn before.
  template <typename Ranks>
  APPS_CALLABLE void take(const Ranks& ranks, const std::int64_t (&place)[dimensions], std::int64_t at) const {
    T* field = ranks.template at<T>(terms.filled);
    for (int i = 0; i < terms.far_sides; ++i) {
      const FusedSide& side = terms.side[i];
      if (!is_on(side, place)) continue;
      std::int64_t ghost = at;
      WAYWISER_UNROLL
      for (int j = 0; j < dimensions; ++j) ghost += side.direction[j] * terms.stride[j];
      const T* parcel = ranks.template at<T>(side.here + (terms.turn - 1) % 2 * terms.parcel);
      each_component(terms.cells, ghost, side.face, in_face(side, place),
                     [&](std::int64_t to, std::int64_t from) { field[to] = parcel[from]; });
    }
  }
  // What was computed to each side, from this one on, at which the cell lies.
  template <typename Ranks>
  APPS_CALLABLE void give(const Ranks& ranks, const std::int64_t (&place)[dimensions], std::int64_t at,
                          int first_side) const {
    const T* field = ranks.template at<T>(terms.written);
    for (int i = first_side; i < terms.sides; ++i) {
      const FusedSide& side = terms.side[i];
      if (!is_on(side, place)) continue;
      if (terms.packed && i < terms.far_sides) {
        T* parcel = ranks.pointer(ranks.template at<T>(side.there + terms.turn % 2 * terms.parcel), side.rank);
        each_component(terms.cells, at, side.face, in_face(side, place),
                       [&](std::int64_t from, std::int64_t to) { parcel[to] = field[from]; });
        continue;
      }
      std::int64_t there = side.first;
      WAYWISER_UNROLL
      for (int j = 0; j < dimensions; ++j)
        if (side.direction[j] == 0) there += (place[j] + 1) * side.stride[j];
      T* ghosts = ranks.pointer(ranks.template at<T>(terms.written), side.rank);
      each_component(terms.cells, at, side.cells, there,
                     [&](std::int64_t from, std::int64_t to) { ghosts[to] = field[from]; });
    }
  }
  template <typename Ranks>
  APPS_CALLABLE void inside(const Ranks& ranks, std::uint32_t block, std::uint32_t blocks) const {
    const FusedBox& box = terms.inner;
    if (box.cells == 0) return;
    const FusedTiles tiles(box, dimensions, ranks.gpu().threads(), terms.rows);
    ranks.gpu().each_thread([&](unsigned thread) {
      for (std::uint32_t tile = block; tile < tiles.tiles; tile += blocks) {
        const std::uint32_t column = tile % tiles.across * tiles.wide + thread % tiles.wide;
        if (column < box.count[dimensions - 1])
          rows(ranks, tile / tiles.across * tiles.high + thread / tiles.wide, column, tiles.groups_of_plane);
      }
    });
  }
  // A column of a group of rows.
  template <typename Ranks>
  APPS_CALLABLE void rows(const Ranks& ranks, std::uint32_t group, std::uint32_t column,
                          std::uint32_t groups_of_plane) const {
    const FusedBox& box = terms.inner;
    constexpr int last = dimensions - 1, before = last - 1;
    std::int64_t place[dimensions] = {}, at = 0;
    std::uint32_t plane = group / groups_of_plane;
    const std::uint32_t row = (group - plane * groups_of_plane) * terms.rows;
    WAYWISER_UNROLL
    for (int i = before; i-- > 0; plane /= box.count[i]) {
      if (i == 0 && plane >= box.count[0]) return;  // behind the last plane
      place[i] = box.first[i] + plane % box.count[i];
      at += (place[i] + 1) * terms.stride[i];
    }
    if (before == 0 && plane > 0) return;
    place[before] = box.first[before] + row;
    place[last] = box.first[last] + column;
    at += (place[before] + 1) * terms.stride[before] + (place[last] + 1) * terms.stride[last];
    const std::uint32_t left = box.count[before] - row < terms.rows ? box.count[before] - row : terms.rows;
    if (left == rows_at_once) {
      WAYWISER_UNROLL
      for (std::uint32_t i = 0; i < rows_at_once; ++i) steady_cell(place, at, i);
    } else {
      for (std::uint32_t i = 0; i < left; ++i) steady_cell(place, at, i);
    }
    if (!terms.puts || terms.sides == terms.far_sides) return;
    for (std::uint32_t i = 0; i < left; ++i, ++place[before])
      give(ranks, place, at + i * terms.stride[before], terms.far_sides);
  }
};

// A step that only puts.
struct ComputesNothing {
  APPS_CALLABLE void operator()(std::int64_t) const {}
  APPS_CALLABLE void steady(std::int64_t) const {}
};

}  // namespace apps
