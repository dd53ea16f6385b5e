#pragma once

#include "waywiser/collective/fused/arithmetic.hpp"
#include "waywiser/collective/fused/kernel.hpp"
#include "waywiser/kernels/block/word_access.hpp"

namespace waywiser::fused {

// All loads of a thread are in flight before its first store: the result may be one of the parts.
template <typename T, unsigned most, bool exact, typename Gpu>
WAYWISER_DEVICE inline void add_parts(const Gpu& gpu, const SumArguments& sum) {
  constexpr unsigned at_once = most > 4 ? 1 : most > 2 ? 2 : 4;
  const std::uint64_t vectors = (sum.bytes + sizeof(Vector16) - 1) / sizeof(Vector16);
  const std::uint64_t tile = std::uint64_t{gpu.threads()} * at_once;
  for (std::uint64_t first = gpu.block() * tile; first < vectors; first += gpu.blocks() * tile)
    gpu.each_thread([&](unsigned thread) {
      Vector16 words[most][at_once] = {}, sums[at_once] = {};
      WAYWISER_UNROLL
      for (unsigned rank = 0; rank < most; ++rank) {
        if (rank >= sum.ranks) continue;
        WAYWISER_UNROLL
        for (unsigned i = 0; i < at_once; ++i)
          if (const std::uint64_t at = first + thread + std::uint64_t{i} * gpu.threads(); at < vectors)
            words[rank][i] = block::load_word<Vector16, exact>(sum.parts[rank], sum.bytes, at);
      }
      reduce_words<Gpu, T>(sum, sum.ranks, words, sums);
      WAYWISER_UNROLL
      for (unsigned i = 0; i < at_once; ++i)
        if (const std::uint64_t at = first + thread + std::uint64_t{i} * gpu.threads(); at < vectors)
          block::store_word<exact>(sum.result, sum.bytes, at, sums[i]);
    });
}

}  // namespace waywiser::fused
