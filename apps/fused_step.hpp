#pragma once

#include <cstdint>

#include "apps/parallel.hpp"
#if defined(__CUDACC__)
#include <waywiser/one_sided.cuh>
#else
#include <waywiser/heap/device/host_heap_block.hpp>
#include <waywiser/heap/device/one_sided.hpp>
#endif

// Steps on a grid in which one kernel does all: it waits for the neighbours' cells, computes, puts its own outermost
// cells into the neighbours' ghosts and signals. No host takes part between two steps. The ghosts are one cell wide.
// Blocks at the edges wait and put; the other blocks compute the cells inside meanwhile.
namespace apps {

constexpr int most_dimensions = 4, most_sides = 8;

struct FusedBox {
  std::int64_t first[most_dimensions] = {}, count[most_dimensions] = {}, cells = 0;
};

// A neighbour in a direction, -1, 0 or 1 in each dimension, and where it has the ghosts of the cells on this side.
struct FusedSide {
  int rank = -1, direction[most_dimensions] = {};
  std::int64_t first = 0, stride[most_dimensions] = {}, cells = 0;
  std::uint64_t heard = 0, told = 0;  // offsets: of the word that tells of its cells, and of that which it waits for
};

struct FusedTerms {
  int dimensions = 0, parts = 0, sides = 0;
  std::int64_t count[most_dimensions] = {}, stride[most_dimensions] = {}, cells = 0;
  int components = 1;  // of a cell: together, or planar: each in an array of all cells
  bool planar = false;
  FusedBox inner, outer[2 * most_dimensions];  // outer: with the cells at the edges, each once
  FusedSide side[most_sides];
  std::uint64_t written = 0;  // the offset of the array that a step writes
  std::uint64_t turn = 0;     // signals count turns
  unsigned edge_blocks = 1;
  bool waits = false;  // for the ghosts of the turn before
  bool puts = false;   // ends a turn
};

constexpr std::uint64_t fused_counter = 0, fused_words = 64, fused_arrays = 8192;  // offsets in the heap
constexpr unsigned fused_threads = 256;
constexpr int fused_rows = 4;  // that a thread takes together

// cell(at) computes the cell with this number in the written array, ghosts included; cell.steady(at) is the same where
// nothing that it reads is written meanwhile. T: a number of a cell.
template <typename T, typename Cell>
struct FusedStep {
  FusedTerms terms;
  Cell cell;

  template <typename Gpu>
  APPS_CALLABLE void operator()(const waywiser::one_sided::OneSided<Gpu>& ranks) const {
    const unsigned block = ranks.gpu().block(), blocks = ranks.gpu().blocks();
    if (block < terms.edge_blocks)
      edges(ranks, block);
    else
      inside(ranks, block - terms.edge_blocks, blocks - terms.edge_blocks);
  }

 private:
  template <typename Gpu>
  APPS_CALLABLE void edges(const waywiser::one_sided::OneSided<Gpu>& ranks, unsigned block) const {
    using namespace waywiser::one_sided;
    if (terms.waits)
      for (int i = 0; i < terms.sides; ++i)
        ranks.template wait_until<Scope::block>(ranks.template at<std::uint64_t>(terms.side[i].heard),
                                                waywiser::one_sided::Comparison::ge, terms.turn, terms.side[i].rank);
    const std::int64_t threads = ranks.gpu().threads(), step = threads * terms.edge_blocks;
    ranks.gpu().each_thread([&](unsigned thread) {
      for (int part = 0; part < terms.parts; ++part)
        for (std::int64_t k = block * threads + thread; k < terms.outer[part].cells; k += step)
          edge_cell(ranks, terms.outer[part], k);
    });
    if (!terms.puts) return;
    ranks.template fence<Scope::block>();
    if (ranks.gpu().index_in(Scope::block) != 0) return;
    const std::uint64_t all = (terms.turn + 1) * terms.edge_blocks;
    if (ranks.atomic_fetch_add(ranks.template at<std::uint64_t>(fused_counter), 1, ranks.rank()) + 1 != all) return;
    ranks.fence();  // the last block tells the neighbours of all blocks
    for (int i = 0; i < terms.sides; ++i)
      ranks.signal_set(ranks.template at<std::uint64_t>(terms.side[i].told), terms.turn + 1, terms.side[i].rank);
  }
  template <typename Gpu>
  APPS_CALLABLE void edge_cell(const waywiser::one_sided::OneSided<Gpu>& ranks, const FusedBox& box,
                               std::int64_t k) const {
    std::int64_t place[most_dimensions] = {}, at = 0;
    for (int i = terms.dimensions; i-- > 0; k /= box.count[i]) {
      place[i] = box.first[i] + k % box.count[i];
      at += (place[i] + 1) * terms.stride[i];
    }
    cell(at);
    if (!terms.puts) return;
    T* field = ranks.template at<T>(terms.written);
    for (int i = 0; i < terms.sides; ++i) {
      const FusedSide& side = terms.side[i];
      std::int64_t there = side.first;
      bool on_side = true;
      for (int j = 0; j < terms.dimensions; ++j) {
        if (side.direction[j] == 0)
          there += (place[j] + 1) * side.stride[j];
        else
          on_side = on_side && place[j] == (side.direction[j] < 0 ? 0 : terms.count[j] - 1);
      }
      if (!on_side) continue;
      if (terms.planar)
        for (int each = 0; each < terms.components; ++each)
          ranks.put(field + each * side.cells + there, field + each * terms.cells + at, 1, side.rank);
      else
        ranks.put(field + there * terms.components, field + at * terms.components,
                  static_cast<std::uint64_t>(terms.components), side.rank);
    }
  }
  // Threads stand side by side along the last dimension, so that they read neighbouring cells.
  template <typename Gpu>
  APPS_CALLABLE void inside(const waywiser::one_sided::OneSided<Gpu>& ranks, std::int64_t block,
                            std::int64_t blocks) const {
    const FusedBox& box = terms.inner;
    if (box.cells == 0) return;
    const int last = terms.dimensions - 1;
    const std::int64_t columns = box.count[last], rows = box.cells / columns, threads = ranks.gpu().threads();
    const std::int64_t across = (columns + threads - 1) / threads,
                       tiles = across * ((rows + fused_rows - 1) / fused_rows);
    ranks.gpu().each_thread([&](unsigned thread) {
      for (std::int64_t tile = block; tile < tiles; tile += blocks) {
        const std::int64_t column = tile % across * threads + thread, row = tile / across * fused_rows;
        if (column >= columns) continue;
        std::int64_t at[fused_rows];
        for (int i = 0; i < fused_rows; ++i) at[i] = row_start(box, row + i < rows ? row + i : rows - 1) + column;
        if (row + fused_rows <= rows) {
          WAYWISER_UNROLL
          for (int i = 0; i < fused_rows; ++i) cell.steady(at[i]);
        } else {
          for (int i = 0; row + i < rows; ++i) cell.steady(at[i]);
        }
      }
    });
  }
  APPS_CALLABLE std::int64_t row_start(const FusedBox& box, std::int64_t row) const {
    const int last = terms.dimensions - 1;
    std::int64_t at = (box.first[last] + 1) * terms.stride[last];
    for (int i = last; i-- > 0; row /= box.count[i]) at += (box.first[i] + row % box.count[i] + 1) * terms.stride[i];
    return at;
  }
};

// A step that only puts.
struct ComputesNothing {
  APPS_CALLABLE void operator()(std::int64_t) const {}
  APPS_CALLABLE void steady(std::int64_t) const {}
};

#if defined(__CUDACC__)
template <typename Step>
__global__ void fused_kernel(const __grid_constant__ waywiser::one_sided::HeapTerms terms,
                             const __grid_constant__ Step step) {
  waywiser::one_sided::CudaHeapBlock block;
  step(waywiser::one_sided::OneSided<waywiser::one_sided::CudaHeapBlock>(block, terms));
}
#endif

}  // namespace apps
