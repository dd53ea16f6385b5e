#pragma once

#include <algorithm>
#include <optional>

#include "apps/moe_dispatch/blocks.hpp"
#include "apps/moe_dispatch/layer.hpp"

namespace apps {

// Where things are in the heap of each rank. Rows are numbered by the rank and the number of their token: no rank needs
// to know how many another one sends. Each row has two words with the steps in which it came last, from the token's
// rank (twice the step, and 1 more if there is a row), and back from an expert's.
struct MoePlaces {
  std::uint64_t came = 0, came_back, routes, tokens, results, end;

  explicit MoePlaces(const ExpertLayer& layer) {
    const auto rows = static_cast<std::uint64_t>(layer.ranks * layer.tokens);
    const std::uint64_t bytes = rows * static_cast<std::uint64_t>(layer.hidden) * sizeof(Bfloat16);
    came_back = (rows * sizeof(std::uint64_t) + 63) / 64 * 64;
    routes = 2 * came_back;
    tokens = routes + rows * sizeof(Route);
    results = tokens + bytes;
    end = results + bytes;
  }
};

// Of one step. `own`: room for a row of each warp, for ranks that stores do not reach.
struct MoeStep {
  one_sided::HeapTerms terms;
  ExpertLayer layer;
  MoePlaces at;
  const Eight* tokens;
  const Route* routes;
  Eight *results, *own;
  unsigned givers;  // blocks that give rows to other ranks; few share a link best
  std::uint64_t number;

  // f(first, apart) by each warp of `blocks` blocks from `begin` on: its number, and that of all of these warps.
  template <typename Gpu, typename Function>
  APPS_CALLABLE void each_warp(Gpu& gpu, unsigned begin, unsigned blocks, Function f) const {
    const auto of_block = static_cast<std::int64_t>((gpu.threads() + 31) / 32);
    gpu.each_warp([&](unsigned warp) {
      f(static_cast<std::int64_t>(gpu.block() - begin) * of_block + static_cast<std::int64_t>(warp),
        static_cast<std::int64_t>(blocks) * of_block);
    });
  }
  // The words and rows of a token: at the rank that has an expert, for its own rank; and the other way around.
  APPS_CALLABLE std::int64_t row_of(int rank, std::int64_t token) const { return rank * layer.tokens + token; }
};

// Each token goes to the other ranks that have its experts: once to each, with its route. What stays is not moved.
struct MoeDispatch : MoeStep {
  template <typename Gpu>
  APPS_CALLABLE void operator()(Gpu& gpu) const {
    const one_sided::OneSided<Gpu> ranks(gpu, terms);
    each_warp(gpu, 0, gpu.blocks(), [&](std::int64_t first, std::int64_t apart) {
      for (std::int64_t token = first; token < layer.tokens; token += apart) {
        const std::uint64_t wanted = routes[token].ranks(layer);
        for (int i = 1; i < layer.ranks; ++i) give(ranks, token, (layer.rank + i) % layer.ranks, wanted);
      }
    });
  }

 private:
  template <typename Gpu>
  APPS_CALLABLE void give(const one_sided::OneSided<Gpu>& ranks, std::int64_t token, int rank,
                          std::uint64_t wanted) const {
    using one_sided::Scope;
    const std::int64_t vectors = layer.vectors(), row = row_of(layer.rank, token);
    auto* came = ranks.template at<std::uint64_t>(at.came) + row;
    if ((wanted >> rank & 1) == 0) {
      if (ranks.gpu().index_in(Scope::warp) == 0) ranks.signal_set(came, 2 * number, rank);
      return;
    }
    ranks.template put<Scope::warp>(ranks.template at<Route>(at.routes) + row, routes + token, 1, rank);
    ranks.template put_with_signal<Scope::warp>(ranks.template at<Eight>(at.tokens) + row * vectors,
                                                tokens + token * vectors, static_cast<std::uint64_t>(vectors), came,
                                                2 * number + 1, one_sided::SignalOp::set, rank);
  }
};

// What the experts of this rank make of each row that comes goes back as it is computed; beside that, each token's
// results are added up as they come back, with what this rank's own experts make of it.
struct MoeCombine : MoeStep {
  template <typename Gpu>
  APPS_CALLABLE void operator()(Gpu& gpu) const {
    const one_sided::OneSided<Gpu> ranks(gpu, terms);
    const unsigned alone = gpu.blocks() == 1 ? 1 : 0;  // one block does both
    if (gpu.block() < givers)
      each_warp(gpu, 0, givers, [&](std::int64_t first, std::int64_t apart) {
        for (std::int64_t token = first; token < layer.tokens; token += apart)
          for (int i = 1; i < layer.ranks; ++i) give_back(ranks, (layer.rank + i) % layer.ranks, token, first);
      });
    if (gpu.block() >= givers || alone != 0)
      each_warp(gpu, alone != 0 ? 0 : givers, alone != 0 ? 1 : gpu.blocks() - givers,
                [&](std::int64_t first, std::int64_t apart) {
                  for (std::int64_t token = first; token < layer.tokens; token += apart) add_up(ranks, token);
                });
  }

 private:
  static constexpr int at_once = 4;  // loads that a thread has in flight

  // f(i, count): so many vectors of this thread, from i on with a warp's width between.
  template <typename Gpu, typename Function>
  APPS_CALLABLE void each_few(Gpu& gpu, Function f) const {
    using one_sided::Scope;
    const std::int64_t apart = gpu.count_of(Scope::warp), vectors = layer.vectors();
    for (std::int64_t first = gpu.index_in(Scope::warp); first < vectors; first += apart * at_once)
      f(first, apart, vectors);
  }
  template <typename Gpu>
  APPS_CALLABLE static Eight times(const Eight& eight, float factor) {
    Eight made;
    for (int k = 0; k < 8; ++k) made.values[k] = Gpu::template narrow<Bfloat16>(factor * Gpu::widen(eight.values[k]));
    return made;
  }
  template <typename Gpu>
  APPS_CALLABLE void give_back(const one_sided::OneSided<Gpu>& ranks, int source, std::int64_t token,
                               std::int64_t warp) const {
    using one_sided::Comparison, one_sided::Scope, one_sided::SignalOp;
    Gpu& gpu = ranks.gpu();
    const std::int64_t vectors = layer.vectors(), row = row_of(source, token);
    const auto* came = ranks.template at<std::uint64_t>(at.came) + row;
    ranks.template wait_until<Scope::warp>(came, Comparison::ge, 2 * number, source);
    if (gpu.read(came) % 2 == 0) return;  // none of this rank's experts
    const float factor = ranks.template at<Route>(at.routes)[row].factor_at(layer, layer.rank);
    const Eight* from = ranks.template at<Eight>(at.tokens) + row * vectors;
    Eight* there = ranks.template at<Eight>(at.results) + row_of(layer.rank, token) * vectors;
    Eight* reached = ranks.pointer(there, source);
    Eight* to = reached != nullptr ? reached : own + warp * vectors;
    each_few(gpu, [&](std::int64_t first, std::int64_t apart, std::int64_t end) {
      Eight eights[at_once];
      WAYWISER_UNROLL
      for (int i = 0; i < at_once; ++i)
        if (first + i * apart < end) eights[i] = from[first + i * apart];
      WAYWISER_UNROLL
      for (int i = 0; i < at_once; ++i)
        if (first + i * apart < end) to[first + i * apart] = times<Gpu>(eights[i], factor);
    });
    auto* back = ranks.template at<std::uint64_t>(at.came_back) + row_of(layer.rank, token);
    ranks.template put_with_signal<Scope::warp>(there, to, static_cast<std::uint64_t>(reached == nullptr ? vectors : 0),
                                                back, number, SignalOp::set, source);
  }
  template <typename Gpu>
  APPS_CALLABLE void add_up(const one_sided::OneSided<Gpu>& ranks, std::int64_t token) const {
    using one_sided::Comparison, one_sided::Scope;
    const std::uint64_t wanted = routes[token].ranks(layer);
    const std::int64_t vectors = layer.vectors();
    const float own_factor = routes[token].factor_at(layer, layer.rank);
    const Eight *came = ranks.template at<Eight>(at.results) + token * vectors, *given = tokens + token * vectors;
    for (int i = 1; i < layer.ranks; ++i)
      if (const int rank = (layer.rank + i) % layer.ranks; (wanted >> rank & 1) != 0)
        ranks.template wait_until<Scope::warp>(ranks.template at<std::uint64_t>(at.came_back) + row_of(rank, token),
                                               Comparison::ge, number, rank);
    each_few(ranks.gpu(), [&](std::int64_t first, std::int64_t apart, std::int64_t end) {
      float sums[at_once][8] = {};
      for (int rank = 0; rank < layer.ranks; ++rank) {
        if ((wanted >> rank & 1) == 0) continue;
        const bool mine = rank == layer.rank;
        const Eight* from = mine ? given : came + rank * layer.tokens * vectors;
        Eight eights[at_once];
        WAYWISER_UNROLL
        for (int i = 0; i < at_once; ++i)
          if (first + i * apart < end) eights[i] = from[first + i * apart];
        WAYWISER_UNROLL
        for (int i = 0; i < at_once; ++i) {
          if (mine) eights[i] = times<Gpu>(eights[i], own_factor);
          for (int k = 0; k < 8; ++k) sums[i][k] += Gpu::widen(eights[i].values[k]);
        }
      }
      WAYWISER_UNROLL
      for (int i = 0; i < at_once; ++i) {
        Eight all;
        for (int k = 0; k < 8; ++k) all.values[k] = Gpu::template narrow<Bfloat16>(sums[i][k]);
        if (first + i * apart < end) results[token * vectors + first + i * apart] = all;
      }
    });
  }
};

// Dispatch and combine as two kernels that pack, send, wait and compute.
class OneSidedLayer {
 public:
  // Collective. `givers`: blocks that give rows to other ranks; 0: a usual number.
  OneSidedLayer(waywiser::Group& group, Processor& processor, const ExpertLayer& layer, unsigned givers)
      : processor_(processor),
        layer_(layer),
        places_(layer),
        heap_(group, "moe", processor.place(), places_.end),
        blocks_(communicating_block_count()),
        givers_(std::clamp(givers == 0 ? usual_givers : givers, 1u, std::max(blocks_, 2u) - 1)),
        own_(processor, rows_apart() * layer.vectors()) {}

  void step(const Eight* tokens, const Route* routes, Eight* results) {
    dispatch(tokens, routes, results);
    combine();
  }
  // The two halves of a step.
  void dispatch(const Eight* tokens, const Route* routes, Eight* results) {
    step_.emplace(MoeStep{terms_on(heap_, processor_), layer_, places_, tokens, routes, results, own_.data(), givers_,
                          ++number_});
    run_blocks(heap_, processor_, std::min(blocks_, 2 * givers_), MoeDispatch{*step_});
  }
  void combine() { run_blocks(heap_, processor_, blocks_, MoeCombine{*step_}); }
  void wait() { wait_for_blocks(heap_, processor_); }

 private:
  static constexpr unsigned usual_givers = 64;

  // A row for each warp, where there are ranks that stores do not reach.
  std::int64_t rows_apart() const {
    for (int rank = 0; rank < layer_.ranks; ++rank)
      if (!heap_.why_proxied(rank).empty()) return static_cast<std::int64_t>(blocks_) * 32;
    return 0;
  }

  Processor& processor_;
  const ExpertLayer layer_;
  const MoePlaces places_;
  waywiser::Heap heap_;
  const unsigned blocks_, givers_;
  Array<Eight> own_;
  std::optional<MoeStep> step_;
  std::uint64_t number_ = 0;
};

}  // namespace apps
