#pragma once

#include "waywiser/kernels/block/ll128.hpp"

namespace waywiser::block {

// Calls f(lane, pairs, end) by all threads of each warp: a thread's lane of `at_once` pairs of lines, of which the data
// have `end`.
template <unsigned at_once, typename Gpu, typename Function>
WAYWISER_DEVICE void each_tile_of_pairs(Gpu& gpu, std::uint64_t bytes, Function f) {
  const auto end = static_cast<std::uint32_t>(pairs_for(bytes));
  const std::uint32_t stride = gpu.threads() / lanes_of_pair;
  for (std::uint32_t begin = 0; begin < end; begin += stride * at_once)
    gpu.each_thread([&](unsigned thread) {
      std::uint32_t pairs[at_once];
      WAYWISER_UNROLL
      for (unsigned i = 0; i < at_once; ++i) pairs[i] = begin + thread / lanes_of_pair + i * stride;
      f(thread % lanes_of_pair, pairs, end);
    });
}

// Sends a block's lines: load(word, pair, lane, end) reads a word, if the data have it, and when(loads) calls loads()
// once and returns when the lines may be written. All loads of a thread are in flight before its first store.
template <unsigned at_once, typename Gpu, typename Tag, typename Load, typename When>
WAYWISER_DEVICE void send_lines(Gpu& gpu, std::uint64_t bytes, Ll128Slot* to, Tag tag, Load load, When when) {
  each_tile_of_pairs<at_once>(gpu, bytes, [&](unsigned lane, const std::uint32_t (&pairs)[at_once], std::uint32_t end) {
    Vector16 words[at_once] = {};
    when([&] {
      WAYWISER_UNROLL
      for (unsigned i = 0; i < at_once; ++i) load(words[i], pairs[i], lane, end);
      return true;
    });
    gpu.join_whole_warp();
    WAYWISER_UNROLL
    for (unsigned i = 0; i < at_once; ++i)
      gpu.store_line(to + std::size_t{pairs[i]} * lanes_of_pair + lane, lane, gpu.line_word(words[i], lane, tag()),
                     pairs[i] < end);
  });
}

// Takes a block's lines: wait(have_come) returns when have_come() holds for all threads of the warp, and
// keep(word, pair, lane, end) stores a word, if the data have it.
template <unsigned at_once, typename Gpu, typename Tag, typename Wait, typename Keep>
WAYWISER_DEVICE void take_lines(Gpu& gpu, std::uint64_t bytes, const Ll128Slot* from, Tag tag, Wait wait, Keep keep) {
  each_tile_of_pairs<at_once>(gpu, bytes, [&](unsigned lane, const std::uint32_t (&pairs)[at_once], std::uint32_t end) {
    Ll128Look looks[at_once];
    wait([&] {
      WAYWISER_UNROLL
      for (unsigned i = 0; i < at_once; ++i)
        if (pairs[i] < end)
          looks[i] = gpu.look_at_line(from + std::size_t{pairs[i]} * lanes_of_pair + lane, lane, tag());
      bool there = true;  // compared when all polls are in flight
      WAYWISER_UNROLL
      for (unsigned i = 0; i < at_once; ++i) there = there && (pairs[i] >= end || gpu.is_there(looks[i], lane, tag()));
      return there;
    });
    WAYWISER_UNROLL
    for (unsigned i = 0; i < at_once; ++i) {
      const Vector16 word = gpu.word_in_line(looks[i], lane);
      keep(word, pairs[i], lane, end);
    }
  });
}

}  // namespace waywiser::block
