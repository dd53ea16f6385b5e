#pragma once

#include <optional>

#include "apps/moe_dispatch/blocks.hpp"
#include "apps/moe_dispatch/layer.hpp"

namespace apps {

// Where things are in the heap of each rank. Rows are numbered by the rank and the number of their token: no rank needs
// to know how many another one sends.
struct MoePlaces {
  std::uint64_t came, came_back;        // a signal for each rank
  std::uint64_t steps, routes, tokens;  // of each row: the step in which it came last
  std::uint64_t results, end;

  explicit MoePlaces(const ExpertLayer& layer) {
    const auto rows = static_cast<std::uint64_t>(layer.ranks * layer.tokens);
    const std::uint64_t bytes = rows * static_cast<std::uint64_t>(layer.hidden) * sizeof(Bfloat16);
    came = 0;
    came_back = 1024;
    steps = 4096;
    routes = steps + (rows * sizeof(std::uint32_t) + 63) / 64 * 64;
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
  std::uint32_t number;

  // f(first, apart) by each warp: its number, and that of all warps of all blocks.
  template <typename Gpu, typename Function>
  APPS_CALLABLE void each_warp(Gpu& gpu, Function f) const {
    const auto of_block = static_cast<std::int64_t>((gpu.threads() + 31) / 32);
    gpu.each_warp([&](unsigned warp) {
      f(static_cast<std::int64_t>(gpu.block()) * of_block + static_cast<std::int64_t>(warp),
        static_cast<std::int64_t>(gpu.blocks()) * of_block);
    });
  }
  // All that this block has put is there before each rank gets the signal.
  template <typename Gpu>
  APPS_CALLABLE void signal_all(const one_sided::OneSided<Gpu>& ranks, std::uint64_t offset) const {
    using one_sided::Scope;
    ranks.template fence<Scope::block>();
    auto* signal = ranks.template at<std::uint64_t>(offset) + layer.rank;
    Gpu& gpu = ranks.gpu();
    for (unsigned rank = gpu.index_in(Scope::block); rank < static_cast<unsigned>(layer.ranks);
         rank += gpu.count_of(Scope::block))
      ranks.signal_add(signal, 1, static_cast<int>(rank));
  }
  // Of all blocks of all ranks, for all steps so far.
  template <typename Gpu>
  APPS_CALLABLE void wait_for_all(const one_sided::OneSided<Gpu>& ranks, std::uint64_t offset) const {
    using one_sided::Scope;
    Gpu& gpu = ranks.gpu();
    const std::uint64_t wanted = std::uint64_t{number} * gpu.blocks();
    for (unsigned rank = gpu.index_in(Scope::block); rank < static_cast<unsigned>(layer.ranks);
         rank += gpu.count_of(Scope::block))
      ranks.wait_until(ranks.template at<std::uint64_t>(offset) + rank, one_sided::Comparison::ge, wanted,
                       static_cast<int>(rank));
    gpu.join(Scope::block);
  }
};

// Each token goes to the ranks that have its experts: once to each, with its route.
struct MoeDispatch : MoeStep {
  template <typename Gpu>
  APPS_CALLABLE void operator()(Gpu& gpu) const {
    using one_sided::Scope;
    const one_sided::OneSided<Gpu> ranks(gpu, terms);
    const std::int64_t vectors = layer.vectors();
    each_warp(gpu, [&](std::int64_t first, std::int64_t apart) {
      for (std::int64_t token = first; token < layer.tokens; token += apart) {
        const std::uint64_t wanted = routes[token].ranks(layer);
        const std::int64_t row = layer.rank * layer.tokens + token;
        for (int i = 1; i <= layer.ranks; ++i) {  // this rank last
          const int rank = (layer.rank + i) % layer.ranks;
          if ((wanted >> rank & 1) == 0) continue;
          ranks.template put<Scope::warp>(ranks.template at<Eight>(at.tokens) + row * vectors, tokens + token * vectors,
                                          static_cast<std::uint64_t>(vectors), rank);
          ranks.template put<Scope::warp>(ranks.template at<Route>(at.routes) + row, routes + token, 1, rank);
          if (gpu.index_in(Scope::warp) == 0) ranks.p(ranks.template at<std::uint32_t>(at.steps) + row, number, rank);
        }
      }
    });
    signal_all(ranks, at.came);
  }
};

// What the experts of this rank make of each row goes back as it is computed; then each rank adds up what has come back
// for its tokens.
struct MoeCombine : MoeStep {
  template <typename Gpu>
  APPS_CALLABLE void operator()(Gpu& gpu) const {
    const one_sided::OneSided<Gpu> ranks(gpu, terms);
    wait_for_all(ranks, at.came);
    each_warp(gpu, [&](std::int64_t first, std::int64_t apart) {
      for (std::int64_t row = first; row < layer.ranks * layer.tokens; row += apart)
        if (ranks.template at<std::uint32_t>(at.steps)[row] == number) give_back(ranks, row, first);
    });
    signal_all(ranks, at.came_back);
    wait_for_all(ranks, at.came_back);
    each_warp(gpu, [&](std::int64_t first, std::int64_t apart) {
      for (std::int64_t token = first; token < layer.tokens; token += apart) add_up(ranks, token);
    });
  }

 private:
  template <typename Gpu, typename Function>
  APPS_CALLABLE void each_vector(Gpu& gpu, Function f) const {
    using one_sided::Scope;
    for (std::int64_t i = gpu.index_in(Scope::warp); i < layer.vectors(); i += gpu.count_of(Scope::warp)) f(i);
  }
  template <typename Gpu>
  APPS_CALLABLE void give_back(const one_sided::OneSided<Gpu>& ranks, std::int64_t row, std::int64_t warp) const {
    using one_sided::Scope;
    Gpu& gpu = ranks.gpu();
    const std::int64_t vectors = layer.vectors(), token = row % layer.tokens;
    const auto source = static_cast<int>(row / layer.tokens);
    const float factor = ranks.template at<Route>(at.routes)[row].factor_at(layer, layer.rank);
    const Eight* from = ranks.template at<Eight>(at.tokens) + row * vectors;
    Eight* there = ranks.template at<Eight>(at.results) + (layer.rank * layer.tokens + token) * vectors;
    Eight* reached = ranks.pointer(there, source);
    Eight* to = reached != nullptr ? reached : own + warp * vectors;
    each_vector(gpu, [&](std::int64_t i) {
      Eight eight = from[i];
      for (Bfloat16& value : eight.values) value = Gpu::template narrow<Bfloat16>(factor * Gpu::widen(value));
      to[i] = eight;
    });
    if (reached == nullptr) ranks.template put<Scope::warp>(there, to, static_cast<std::uint64_t>(vectors), source);
  }
  template <typename Gpu>
  APPS_CALLABLE void add_up(const one_sided::OneSided<Gpu>& ranks, std::int64_t token) const {
    const std::uint64_t wanted = routes[token].ranks(layer);
    const std::int64_t vectors = layer.vectors();
    const Eight* came = ranks.template at<Eight>(at.results) + token * vectors;
    each_vector(ranks.gpu(), [&](std::int64_t i) {
      float sums[8] = {};
      for (int rank = 0; rank < layer.ranks; ++rank) {
        if ((wanted >> rank & 1) == 0) continue;
        const Eight eight = came[rank * layer.tokens * vectors + i];
        for (int k = 0; k < 8; ++k) sums[k] += Gpu::widen(eight.values[k]);
      }
      Eight all;
      for (int k = 0; k < 8; ++k) all.values[k] = Gpu::template narrow<Bfloat16>(sums[k]);
      results[token * vectors + i] = all;
    });
  }
};

// Dispatch and combine as two kernels that pack, send, wait and compute.
class OneSidedLayer {
 public:
  // Collective.
  OneSidedLayer(waywiser::Group& group, Processor& processor, const ExpertLayer& layer)
      : processor_(processor),
        layer_(layer),
        places_(layer),
        heap_(group, "moe", processor.place(), places_.end),
        blocks_(communicating_block_count()),
        own_(processor, rows_apart() * layer.vectors()) {}

  void step(const Eight* tokens, const Route* routes, Eight* results) {
    const MoeStep step{terms_on(heap_, processor_), layer_, places_, tokens, routes, results, own_.data(), ++number_};
    run_blocks(heap_, processor_, blocks_, MoeDispatch{step});
    run_blocks(heap_, processor_, blocks_, MoeCombine{step});
  }
  void wait() { wait_for_blocks(heap_, processor_); }

 private:
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
  const unsigned blocks_;
  Array<Eight> own_;
  std::uint32_t number_ = 0;
};

}  // namespace apps
