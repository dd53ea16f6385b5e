#pragma once

#include "waywiser/collective/fused/arithmetic.hpp"
#include "waywiser/collective/fused/operation_body.hpp"
#include "waywiser/kernels/block/ll128.hpp"
#include "waywiser/kernels/block/word_access.hpp"

namespace waywiser::fused {

// Like PushBody, by LL128: no flags follow the data, and each warp continues when its own lines have arrived. All
// threads of a warp stay together. All ranks cut blocks of data into pairs of lines at the same places; there is at
// least one pair, so that every rank hears from every rank. A thread has `at_once` pairs of each rank in flight. The
// time goes to dependent instructions: everything that can be computed once is, in 32 bits, and polls are not avoided
// if a branch would cost more.
template <typename T, unsigned most, unsigned at_once, bool exact, typename Gpu>
class Ll128Body {
 public:
  WAYWISER_DEVICE Ll128Body(Gpu& gpu, const FusedArguments& terms, const FusedWork& work)
      : gpu_(gpu),
        terms_(terms),
        work_(work),
        operation_(gpu, terms, work),
        me_(terms.rank),
        ranks_(terms.layout.ranks),
        pairs_(static_cast<std::uint32_t>(block::pairs_for(work.bytes))),
        words_(words_in(work.bytes)),
        all_words_(work.total == 0 ? ~0u : words_in(work.total)) {}

  WAYWISER_DEVICE void run_one_shot() {
    send();
    operation_.count();
    each_tile([&](const Tile& tile) {
      Words words = {};
      receive(0, tile, true, words);
      if (work_.reduced)
        keep_sums(tile, words, work_.output);
      else
        keep(tile, words, true);
    });
  }

  WAYWISER_DEVICE void run_two_shot() {
    send();
    operation_.count();
    each_tile([&](const Tile& tile) {
      Words words = {};
      receive(0, tile, true, words);
      keep_sums(tile, words, work_.output + me_ * work_.stride);
    });
    each_tile([&](const Tile& tile) {
      Words words = {};
      receive(1, tile, false, words);
      keep(tile, words, false);
    });
  }

 private:
  static constexpr std::uint32_t no_word = ~0u;
  using Words = Vector16[most][at_once];

  // One thread's share at a time: its lane of some pairs.
  struct Tile {
    unsigned lane;
    std::uint64_t slots[at_once];  // byte offsets among one rank's pairs; always valid
    std::uint32_t words[at_once];  // which words of a block they carry
    bool active[at_once];
  };

  // Calls f(tile) for this block's part of the pairs.
  template <typename Function>
  WAYWISER_DEVICE void each_tile(Function f) {
    const std::uint32_t part = (pairs_ + gpu_.blocks() - 1) / gpu_.blocks(), begin = gpu_.block() * part;
    const std::uint32_t end = begin + part < pairs_ ? begin + part : pairs_,
                        step = gpu_.threads() / block::lanes_of_pair;
    for (std::uint32_t first = begin; first < end; first += step * at_once)
      gpu_.each_thread([&](unsigned thread) {
        Tile tile;
        tile.lane = thread % block::lanes_of_pair;
        WAYWISER_UNROLL
        for (unsigned i = 0; i < at_once; ++i) {
          const std::uint32_t pair = first + thread / block::lanes_of_pair + i * step;
          tile.active[i] = pair < end;
          const std::uint32_t place = tile.active[i] ? pair : end - 1;
          tile.slots[i] = std::uint64_t{place} * block::wire_bytes_of_pair + tile.lane * sizeof(block::Ll128Slot);
          tile.words[i] =
              tile.active[i] && tile.lane < block::words_of_pair ? pair * block::words_of_pair + tile.lane : no_word;
        }
        f(tile);
      });
  }

  WAYWISER_DEVICE static std::uint32_t words_in(std::uint64_t bytes) {
    return static_cast<std::uint32_t>((bytes + sizeof(Vector16) - 1) / sizeof(Vector16));
  }
  WAYWISER_DEVICE std::uint32_t words_of(unsigned block) const {
    const std::uint32_t before = block * words_, left = all_words_ > before ? all_words_ - before : 0;
    return left < words_ ? left : words_;
  }
  WAYWISER_DEVICE const std::byte* input_for(unsigned rank) const {
    return work_.input + (work_.scattered ? rank * work_.stride : 0);
  }
  // The block whose sums this rank computes.
  WAYWISER_DEVICE unsigned own_block() const { return work_.scattered ? me_ : 0; }
  WAYWISER_DEVICE unsigned rank_at(unsigned distance) const {
    const unsigned rank = me_ + distance;
    return rank < ranks_ ? rank : rank - ranks_;
  }
  // In the memory of `rank`: the data from `from`.
  WAYWISER_DEVICE block::Ll128Slot* slot(unsigned rank, unsigned shot, unsigned from, const Tile& tile,
                                         unsigned i) const {
    const std::uint64_t pairs = lines_of(from) + tile.slots[i];
    return reinterpret_cast<block::Ll128Slot*>(terms_.landing[rank] + terms_.layout.ll128(operation_.turn(), shot) +
                                               pairs);
  }
  WAYWISER_DEVICE std::uint64_t lines_of(unsigned from) const {
    return std::uint64_t{from} * pairs_ * block::wire_bytes_of_pair;
  }

  WAYWISER_DEVICE void load(Vector16 (&words)[at_once], const std::byte* data, unsigned block, const Tile& tile) const {
    WAYWISER_UNROLL
    for (unsigned i = 0; i < at_once; ++i)
      if (tile.words[i] < words_of(block))
        words[i] = block::load_word<Vector16, exact>(data, work_.bytes_of_block(block), tile.words[i]);
  }
  WAYWISER_DEVICE void store(std::byte* data, const Vector16 (&words)[at_once], unsigned block,
                             const Tile& tile) const {
    WAYWISER_UNROLL
    for (unsigned i = 0; i < at_once; ++i)
      if (tile.words[i] < words_of(block))
        block::store_word<exact>(data, work_.bytes_of_block(block), tile.words[i], words[i]);
  }

  WAYWISER_DEVICE void send() {
    if (work_.scattered)
      each_tile([&](const Tile& tile) { scatter(tile); });
    else
      each_tile([&](const Tile& tile) {
        Vector16 words[at_once] = {};
        load(words, work_.input, 0, tile);
        send_to_all(0, tile, words);
      });
  }
  // The loads for all ranks are in flight before the first store.
  WAYWISER_DEVICE void scatter(const Tile& tile) {
    Words words = {};
    WAYWISER_UNROLL
    for (unsigned distance = 1; distance < most; ++distance)
      if (distance < ranks_) {
        const unsigned rank = rank_at(distance);
        load(words[distance], input_for(rank), rank, tile);
      }
    WAYWISER_UNROLL
    for (unsigned distance = 1; distance < most; ++distance) {
      if (distance >= ranks_) continue;
      WAYWISER_UNROLL
      for (unsigned i = 0; i < at_once; ++i)
        gpu_.store_line(slot(rank_at(distance), 0, me_, tile, i), tile.lane,
                        gpu_.line_word(words[distance][i], tile.lane, operation_.tag()), tile.active[i]);
    }
  }
  WAYWISER_DEVICE void send_to_all(unsigned shot, const Tile& tile, const Vector16 (&words)[at_once]) {
    block::Ll128Word lines[at_once];
    WAYWISER_UNROLL
    for (unsigned i = 0; i < at_once; ++i) lines[i] = gpu_.line_word(words[i], tile.lane, operation_.tag());
    WAYWISER_UNROLL
    for (unsigned distance = 1; distance < most; ++distance) {
      if (distance >= ranks_) continue;
      WAYWISER_UNROLL
      for (unsigned i = 0; i < at_once; ++i)
        gpu_.store_line(slot(rank_at(distance), shot, me_, tile, i), tile.lane, lines[i], tile.active[i]);
    }
  }

  // Receives the other ranks' data in rank order, and this rank's own if wanted.
  WAYWISER_DEVICE void receive(unsigned shot, const Tile& tile, bool with_own, Words& words) {
    Vector16 own[at_once] = {};
    if (with_own) load(own, input_for(me_), own_block(), tile);
    block::Ll128Look looks[most][at_once];
    operation_.wait_together([&] {
      WAYWISER_UNROLL
      for (unsigned rank = 0; rank < most; ++rank) {
        if (rank >= ranks_) continue;
        WAYWISER_UNROLL
        for (unsigned i = 0; i < at_once; ++i)
          looks[rank][i] = gpu_.look_at_line(slot(me_, shot, rank, tile, i), tile.lane, operation_.tag());
      }
      // Compared only now, when all polls are in flight.
      unsigned missing = 0;
      WAYWISER_UNROLL
      for (unsigned rank = 0; rank < most; ++rank) {
        if (rank >= ranks_ || rank == me_) continue;
        WAYWISER_UNROLL
        for (unsigned i = 0; i < at_once; ++i) {
          const bool there = gpu_.is_there(looks[rank][i], tile.lane, operation_.tag());
          if (tile.active[i] && !there) missing = rank + 1;
        }
      }
      return missing;
    });
    WAYWISER_UNROLL
    for (unsigned rank = 0; rank < most; ++rank) {
      if (rank >= ranks_) continue;
      WAYWISER_UNROLL
      for (unsigned i = 0; i < at_once; ++i) {
        const Vector16 word = gpu_.word_in_line(looks[rank][i], tile.lane);
        words[rank][i] = rank == me_ ? own[i] : word;
      }
    }
  }

  // Stores the sums of this rank's block. In two shots all others get them too.
  WAYWISER_DEVICE void keep_sums(const Tile& tile, const Words& words, std::byte* to) {
    Vector16 sums[at_once];
    reduce_words<Gpu, T>(work_, ranks_, words, sums);
    if (work_.split) send_to_all(1, tile, sums);
    store(to, sums, own_block(), tile);
  }
  // Stores the others' blocks, and this rank's own unless it is already in place.
  WAYWISER_DEVICE void keep(const Tile& tile, const Words& words, bool own) {
    WAYWISER_UNROLL
    for (unsigned rank = 0; rank < most; ++rank)
      if (rank < ranks_ && (own || rank != me_)) store(work_.output + rank * work_.stride, words[rank], rank, tile);
  }

  Gpu& gpu_;
  const FusedArguments& terms_;
  const FusedWork& work_;
  OperationBody<Gpu> operation_;
  unsigned me_, ranks_;
  std::uint32_t pairs_, words_, all_words_;  // of a block, and of all blocks if the last ones are shorter
};

}  // namespace waywiser::fused
