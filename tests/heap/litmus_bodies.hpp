#pragma once

// The litmus tests of docs/one-sided.md, each a pair of bodies: on blocks with late stores and old loads in
// litmus_test.cpp, on virtual and real GPUs in order_bodies.hpp.
#include "waywiser/heap/device/packets.hpp"
#include "waywiser/heap/device/team.hpp"

namespace waywiser::one_sided {

// Two words in the memory of one rank or two, and the value that a turn gives them; before it both are less.
struct LitmusWords {
  std::uint64_t *x = nullptr, *y = nullptr;
  std::uint64_t turn = 1;
};

// What one or both ranks have read.
struct LitmusSeen {
  std::uint64_t values[2] = {};
};

template <typename Gpu>
WAYWISER_DEVICE void pass_message(const OneSided<Gpu>& ranks, const LitmusWords& words) {
  ranks.put(words.x, &words.turn, 1, 1);
  ranks.fence();
  ranks.signal_set(words.y, words.turn, 1);
}

template <typename Gpu>
WAYWISER_DEVICE void put_and_signal(const OneSided<Gpu>& ranks, const LitmusWords& words, SignalOp op) {
  ranks.put_with_signal(words.x, &words.turn, 1, words.y, op == SignalOp::set ? words.turn : 1, op, 1);
}

template <typename Gpu>
WAYWISER_DEVICE void put_twice(const OneSided<Gpu>& ranks, const LitmusWords& words) {
  ranks.put(words.x, &words.turn, 1, 1);
  ranks.fence();
  ranks.put(words.y, &words.turn, 1, 1);
}

// Whoever tests a word and then reads another one.
template <typename Gpu>
WAYWISER_DEVICE void test_and_read(const OneSided<Gpu>& ranks, const LitmusWords& words, LitmusSeen& seen) {
  seen.values[0] = ranks.test(words.y, Comparison::eq, words.turn) ? words.turn : 0;
  seen.values[1] = ranks.g(words.x, ranks.rank());
}

template <typename Gpu>
WAYWISER_DEVICE void read_twice(const OneSided<Gpu>& ranks, const LitmusWords& words, LitmusSeen& seen) {
  seen.values[0] = ranks.g(words.y, 1);
  ranks.fence();
  seen.values[1] = ranks.g(words.x, 1);
}

// Rank 0 with x at 1 and y at 0; the other one with both exchanged.
template <typename Gpu>
WAYWISER_DEVICE void store_and_load(const OneSided<Gpu>& ranks, const LitmusWords& words, std::uint64_t& seen) {
  const int rank = ranks.rank();
  ranks.p(rank == 0 ? words.x : words.y, words.turn, 1 - rank);
  ranks.quiet();
  seen = ranks.g(rank == 0 ? words.y : words.x, rank);
}

template <typename Gpu>
WAYWISER_DEVICE void load_and_store(const OneSided<Gpu>& ranks, const LitmusWords& words, std::uint64_t& seen) {
  const int rank = ranks.rank();
  ranks.get_nbi(&seen, rank == 0 ? words.x : words.y, 1, 1 - rank);
  ranks.quiet();
  ranks.p(rank == 0 ? words.y : words.x, words.turn, rank);
}

}  // namespace waywiser::one_sided
