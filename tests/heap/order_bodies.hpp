#pragma once

// The litmus tests of litmus_bodies.hpp by ranks 0 and 1, and the same of blocks.
#include "tests/heap/body_ranks.hpp"
#include "tests/heap/litmus_bodies.hpp"
#include "waywiser/heap/device/packets.hpp"

namespace waywiser::one_sided {

// Litmus tests of ranks 0 and 1 by one thread each. Words go round, so that a sender runs ahead of its reader.
template <typename Gpu>
WAYWISER_DEVICE LitmusWords litmus_words(const BodyRanks<Gpu>& body, std::uint64_t turn, std::uint64_t value) {
  const std::uint64_t slot = turn % 64;
  return {body.template at<std::uint64_t>((1 << 15) + slot * 256),
          body.template at<std::uint64_t>((1 << 16) + slot * 320), value};
}

// send(words) at rank 0, read(words, seen) at rank 1 until the first value has come; then the second one must be there.
template <typename Gpu, typename Send, typename Read>
WAYWISER_DEVICE void litmus_pipeline(const BodyRanks<Gpu>& body, Send send, Read read) {
  if (!body.leads() || body.rank() > 1) return;
  const auto& ranks = body.ranks;
  auto* done = body.template at<std::uint64_t>(4096);
  for (std::uint64_t turn = 0; turn < body.terms.turns; ++turn) {
    const LitmusWords words = litmus_words(body, turn, turn / 64 + 1);
    if (body.rank() == 0) {
      if (turn % 16 == 0 && turn >= 32) ranks.wait_until(done, Comparison::ge, turn - 32, 1);
      send(words);
      continue;
    }
    LitmusSeen seen;
    ranks.wait(
        [&] {
          read(words, seen);
          return seen.values[0] == words.turn;
        },
        [&] { ranks.stop_late(words.y, Comparison::eq, words.turn, seen.values[0], 0); });
    body.need(seen.values[1], words.turn, turn);
    if (turn % 16 != 15) continue;
    ranks.fence();
    ranks.signal_set(done, turn + 1, 0);
  }
}

struct MessagePassing {
  template <typename Gpu>
  WAYWISER_DEVICE static void run(const BodyRanks<Gpu>& body) {
    litmus_pipeline(
        body, [&](const LitmusWords& words) { pass_message(body.ranks, words); },
        [&](const LitmusWords& words, LitmusSeen& seen) { test_and_read(body.ranks, words, seen); });
  }
};

template <SignalOp op>
struct SignalAfterPut {
  template <typename Gpu>
  WAYWISER_DEVICE static void run(const BodyRanks<Gpu>& body) {
    litmus_pipeline(
        body, [&](const LitmusWords& words) { put_and_signal(body.ranks, words, op); },
        [&](const LitmusWords& words, LitmusSeen& seen) { test_and_read(body.ranks, words, seen); });
  }
};

struct PutPut {
  template <typename Gpu>
  WAYWISER_DEVICE static void run(const BodyRanks<Gpu>& body) {
    litmus_pipeline(
        body, [&](const LitmusWords& words) { put_twice(body.ranks, words); },
        [&](const LitmusWords& words, LitmusSeen& seen) { read_twice(body.ranks, words, seen); });
  }
};

// act(words, seen) at both ranks at about the same time. What both have seen must not be `forbidden`, the value of the
// turn or an older one.
template <typename Gpu, typename Act>
WAYWISER_DEVICE void litmus_together(const BodyRanks<Gpu>& body, bool new_is_forbidden, Act act) {
  const auto& ranks = body.ranks;
  auto *met = body.template at<std::uint64_t>(4096), *all_seen = body.template at<std::uint64_t>(1 << 20);
  const std::uint64_t turns = body.terms.turns;
  if (body.leads() && body.rank() < 2)
    for (std::uint64_t turn = 1; turn <= turns; ++turn) {
      const int rank = body.rank();
      const LitmusWords words = litmus_words(body, turn, turn);
      ranks.signal_set(met, turn, 1 - rank);
      ranks.wait_until(met, Comparison::ge, turn, 1 - rank);
      for (std::uint64_t i = 0; i < turn * (rank == 0 ? 3 : 7) % 16; ++i)
        static_cast<void>(ranks.gpu().nanoseconds());  // one is later, in turn
      std::uint64_t seen = 0;
      act(words, seen);
      all_seen[turn - 1] = seen;
    }
  body.barrier();
  if (body.rank() == 0)
    body.template each<Scope::block>(turns, [&](std::uint64_t i) {
      const bool mine = all_seen[i] == i + 1, theirs = ranks.g(all_seen + i, 1) == i + 1;
      body.need(mine == new_is_forbidden && theirs == new_is_forbidden, false, i);
    });
  body.barrier();
}

struct StoreBuffering {
  template <typename Gpu>
  WAYWISER_DEVICE static void run(const BodyRanks<Gpu>& body) {
    litmus_together(body, false,
                    [&](const LitmusWords& words, std::uint64_t& seen) { store_and_load(body.ranks, words, seen); });
  }
};

struct LoadBuffering {
  template <typename Gpu>
  WAYWISER_DEVICE static void run(const BodyRanks<Gpu>& body) {
    litmus_together(body, true,
                    [&](const LitmusWords& words, std::uint64_t& seen) { load_and_store(body.ranks, words, seen); });
  }
};

// The same of blocks: all that the threads of one put is there when the other block has its signal, its packets, or has
// left the barrier.
struct BlocksOrder {
  template <typename Gpu>
  WAYWISER_DEVICE static void run(const BodyRanks<Gpu>& body) {
    const auto& ranks = body.ranks;
    constexpr std::uint64_t count = 600;
    auto *signal = body.template at<std::uint64_t>(4096), *given = body.template at<std::uint64_t>(8192);
    auto *taken = body.template at<std::uint64_t>(1 << 16), *unpacked = body.template at<std::uint64_t>(1 << 17);
    auto* there = body.template at<std::uint64_t>(1 << 18);
    auto* packets = body.template at<block::LlPacket>(1 << 19);
    const auto both = [&](const std::uint64_t* numbers, std::uint64_t turn) {
      body.template each<Scope::block>(count, [&](std::uint64_t i) { body.need(numbers[i], turn * 1000 + i, turn); });
    };
    for (std::uint64_t turn = 1; turn <= body.terms.turns / 10; ++turn) {
      body.template each<Scope::block>(count, [&](std::uint64_t i) { given[i] = turn * 1000 + i; });
      ranks.template put_with_signal<Scope::block>(taken, given, count, signal, turn, SignalOp::set, body.right());
      put_packets<Scope::block>(ranks, packets, given, count, turn, body.right());
      wait_packets<Scope::block>(ranks, unpacked, packets, count, turn, body.left());
      both(unpacked, turn);
      ranks.template wait_until<Scope::block>(signal, Comparison::eq, turn, body.left());
      both(taken, turn);
      ranks.template put<Scope::block>(there, given, count, body.right());
      body.barrier();
      both(there, turn);
      body.barrier();
    }
  }
};

}  // namespace waywiser::one_sided
