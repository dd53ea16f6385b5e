#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <waywiser/group/group.hpp>
#include <waywiser/heap/heap.hpp>

#include "apps/grid.hpp"
#include "apps/parallel.hpp"
#if defined(__CUDACC__)
#include <waywiser/one_sided.cuh>
#else
#include <waywiser/heap/device/host_heap_block.hpp>
#include <waywiser/heap/device/one_sided.hpp>
#endif

// Steps on a grid in which one kernel does all: it waits for the neighbours' cells, computes, puts its own outermost
// cells into the neighbours' ghosts and signals. No host takes part between two steps. The ghosts are one cell wide and
// faces only. Blocks at the edges wait and put; the other blocks compute the cells inside meanwhile.
namespace apps {

constexpr int most_dimensions = 4;

struct FusedBox {
  std::int64_t first[most_dimensions] = {}, count[most_dimensions] = {}, cells = 0;
};

// A neighbour, and where it has the ghosts of this rank's face.
struct FusedFace {
  int rank = -1;
  std::int64_t first = 0, stride[most_dimensions] = {};
  std::uint64_t told = 0;  // the offset of the word that it waits for
};

struct FusedTerms {
  int dimensions = 0, parts = 0;
  std::int64_t count[most_dimensions] = {}, stride[most_dimensions] = {};
  FusedBox inner, outer[2 * most_dimensions];  // outer: with the cells at the edges, each once
  FusedFace faces[2 * most_dimensions];        // of each dimension the lower one, then the upper one
  std::uint64_t written = 0;                   // the offset of the array that a step writes
  std::uint64_t turn = 0;                      // signals count turns
  unsigned edge_blocks = 1;
  bool waits = false;  // for the ghosts of the turn before
  bool puts = false;   // ends a turn
};

constexpr std::uint64_t fused_words = 64, fused_counter = fused_words * 2 * most_dimensions, fused_arrays = 1024;
constexpr unsigned fused_threads = 256;
constexpr int fused_rows = 4;  // that a thread takes together

// cell(at) computes the cell with this number in the written array, ghosts included; cell.steady(at) is the same where
// nothing that it reads is written meanwhile. T: a cell, whatever numbers it has.
template <typename T, typename Cell>
struct FusedStep {
  FusedTerms terms;
  Cell cell;

  template <typename Gpu>
  APPS_CALLABLE void operator()(const waywiser::one_sided::OneSided<Gpu>& ranks) const {
    const unsigned block = ranks.gpu().block(), blocks = ranks.gpu().blocks();
    if (block < terms.edge_blocks) edges(ranks, block);
    if (blocks == 1) return inside(ranks, 0, 1);
    if (block >= terms.edge_blocks) inside(ranks, block - terms.edge_blocks, blocks - terms.edge_blocks);
  }

 private:
  template <typename Gpu>
  APPS_CALLABLE void edges(const waywiser::one_sided::OneSided<Gpu>& ranks, unsigned block) const {
    using namespace waywiser::one_sided;
    if (terms.waits)
      for (int i = 0; i < 2 * terms.dimensions; ++i)
        if (terms.faces[i].rank >= 0)
          ranks.template wait_until<Scope::block>(ranks.template at<std::uint64_t>(fused_words * i), Comparison::ge,
                                                  terms.turn, terms.faces[i].rank);
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
    for (int i = 0; i < 2 * terms.dimensions; ++i)
      if (terms.faces[i].rank >= 0)
        ranks.signal_set(ranks.template at<std::uint64_t>(terms.faces[i].told), terms.turn + 1, terms.faces[i].rank);
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
    for (int i = 0; i < 2 * terms.dimensions; ++i) {
      const FusedFace& face = terms.faces[i];
      const int across = i / 2;
      if (face.rank < 0 || place[across] != (i % 2 == 0 ? 0 : terms.count[across] - 1)) continue;
      std::int64_t there = face.first;
      for (int j = 0; j < terms.dimensions; ++j)
        if (j != across) there += (place[j] + 1) * face.stride[j];
      ranks.put(field + there, field + at, 1, face.rank);
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

// Two arrays of cells in a heap, of which steps read one and write the other in turn.
template <typename T>
class FusedField {
 public:
  // Collective. Throws unavailable at all ranks where stores do not reach a rank.
  FusedField(waywiser::Group& group, Processor& processor, const waywiser::HaloGrid& grid)
      : processor_(processor),
        bytes_(largest_array(grid)),
        heap_(group, "fused", processor.place(), fused_arrays + 2 * bytes_) {
    for (int rank = 0; rank < group.size(); ++rank) static_cast<void>(heap_.peer(rank));
    const auto dimensions = static_cast<int>(grid.shape.size());
    const waywiser::GridBox& box = grid.boxes[static_cast<std::size_t>(group.rank())];
    terms_.dimensions = dimensions;
    std::ranges::copy(box.count, terms_.count);
    std::ranges::copy(strides_of(grid, group.rank()), terms_.stride);
    const CellParts parts = inner_and_outer(box.count);
    terms_.inner = fused_box(parts.inner);
    std::int64_t edge_cells = 0;
    for (const CellBox& each : parts.outer) {
      terms_.outer[terms_.parts] = fused_box(each);
      edge_cells = std::max(edge_cells, terms_.outer[terms_.parts++].cells);
    }
    for (int i = 0; i < 2 * dimensions; ++i) terms_.faces[i] = face_of(grid, group.rank(), i / 2, i % 2 == 1);
#if defined(__CUDACC__)
    terms_.edge_blocks = static_cast<unsigned>(
        std::clamp<std::int64_t>((edge_cells + fused_threads - 1) / fused_threads, 1, most_edge_blocks));
    blocks_ = terms_.edge_blocks + static_cast<unsigned>(std::clamp<std::int64_t>(
                                       terms_.inner.cells / (fused_threads * fused_rows), 1, most_blocks));
#endif
  }

  // As kernels of this rank reach them.
  T* array(int which) const {
    const auto terms = heap_terms();
    return reinterpret_cast<T*>(terms.ranks[terms.rank] + offset(which));
  }
  // Puts the outermost cells of array 0, which is there, into the neighbours' ghosts. All ranks have ended their steps.
  void begin() { run(0, ComputesNothing{}, false, true); }
  // A step that writes this array.
  template <typename Cell>
  void step(int written, Cell cell) {
    run(written, cell, true, true);
  }
  // The two halves of one, between which the ranks have met: one writes array 0 and puts, one waits for the ghosts of
  // it.
  template <typename Cell>
  void put_step(Cell cell) {
    run(0, cell, false, true);
  }
  template <typename Cell>
  void wait_step(Cell cell) {
    run(0, cell, true, false);
  }
  // Throws if a wait has not ended in time.
  void wait() {
#if defined(__CUDACC__) || defined(APPS_VIRTUAL_GPUS)
    heap_.synchronize(processor_.stream());
#else
    heap_.check();
#endif
  }

 private:
  static constexpr std::int64_t most_edge_blocks = 64, most_blocks = 4096;

  template <typename Cell>
  void run(int written, Cell cell, bool waits, bool puts) {
    FusedStep<T, Cell> step{terms_, cell};
    step.terms.written = offset(written);
    step.terms.turn = puts ? turn_++ : turn_;
    step.terms.waits = waits;
    step.terms.puts = puts;
#if defined(__CUDACC__)
    fused_kernel<<<blocks_, fused_threads, 0, processor_.native()>>>(heap_terms(), step);
    check(cudaGetLastError(), "a fused step");
#else
    const auto body = [step, terms = heap_terms()] {
      waywiser::one_sided::HostHeapBlock block;
      step(waywiser::one_sided::OneSided<waywiser::one_sided::HostHeapBlock>(block, terms));
    };
#if defined(APPS_VIRTUAL_GPUS)
    processor_.stream().launch({1, 1, [body](const waywiser::ThreadContext&) { body(); }, {}});
#else
    try {
      body();
    } catch (const waywiser::Trap&) {
      heap_.check();
    }
#endif
#endif
  }
  waywiser::one_sided::HeapTerms heap_terms() const {
#if defined(__CUDACC__) || defined(APPS_VIRTUAL_GPUS)
    return heap_.terms(processor_.stream());
#else
    return heap_.terms();
#endif
  }
  std::uint64_t offset(int which) const { return fused_arrays + static_cast<std::uint64_t>(which) * bytes_; }

  static std::vector<std::int64_t> strides_of(const waywiser::HaloGrid& grid, int rank) {
    const std::vector<std::int64_t> shape = grid.local_shape(rank);
    std::vector<std::int64_t> strides(shape.size(), 1);
    for (std::size_t i = shape.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * shape[i];
    return strides;
  }
  static std::uint64_t largest_array(const waywiser::HaloGrid& grid) {
    std::int64_t most = 0;
    for (int rank = 0; rank < static_cast<int>(grid.boxes.size()); ++rank)
      most = std::max(most, strides_of(grid, rank)[0] * grid.local_shape(rank)[0]);
    return (static_cast<std::uint64_t>(most) * sizeof(T) + 255) / 256 * 256;
  }
  static FusedBox fused_box(const CellBox& box) {
    FusedBox made;
    made.cells = 1;
    for (std::size_t i = 0; i < box.count.size(); ++i) {
      made.first[i] = box.first[i];
      made.count[i] = box.count[i];
      made.cells *= box.count[i];
    }
    return made;
  }
  static FusedFace face_of(const waywiser::HaloGrid& grid, int rank, int dimension, bool up) {
    FusedFace face;
    const auto across = static_cast<std::size_t>(dimension);
    face.rank = rank_beside(grid, rank, across, up);
    if (face.rank < 0) return face;
    const std::vector<std::int64_t> strides = strides_of(grid, face.rank);
    std::ranges::copy(strides, face.stride);
    if (!up) face.first = (grid.boxes[static_cast<std::size_t>(face.rank)].count[across] + 1) * strides[across];
    face.told = fused_words * static_cast<std::uint64_t>(2 * dimension + (up ? 0 : 1));
    return face;
  }

  Processor& processor_;
  std::uint64_t bytes_;
  waywiser::Heap heap_;
  FusedTerms terms_;
  unsigned blocks_ = 1;
  std::uint64_t turn_ = 0;
};

}  // namespace apps
