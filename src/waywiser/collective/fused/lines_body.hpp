#pragma once

#include "waywiser/collective/fused/arithmetic.hpp"
#include "waywiser/collective/fused/operation_body.hpp"
#include "waywiser/collective/fused/word_access.hpp"

namespace waywiser::fused {

// Every rank sends lines: eight threads of a warp store 120 bytes of data and the number of the operation as one
// aligned line of 128 bytes, which NVLink delivers as a whole. So a line says by itself that it is there, as a packet
// does, for a fifteenth more bytes instead of twice as many.
template <typename T, unsigned most, bool exact, typename Gpu>
class LinesBody {
 public:
  WAYWISER_DEVICE LinesBody(Gpu& gpu, const Terms& terms, const Work& work)
      : gpu_(gpu), terms_(terms), work_(work), operation_(gpu, terms), me_(terms.rank), ranks_(terms.layout.ranks) {}

  // What arrives is the result, or is reduced to it.
  WAYWISER_DEVICE void run_one_shot() {
    each_part([&](const Lane& lane) { send(lane); });
    operation_.count();
    if (operation_.failed()) return;
    each_part([&](const Lane& lane) { work_.reduced ? reduce(lane, false) : take(lane, 0); });
  }

  // Block i goes to rank i, which reduces it and sends the result to all.
  WAYWISER_DEVICE void run_two_shot() {
    each_part([&](const Lane& lane) { send(lane); });
    operation_.count();
    if (operation_.failed()) return;
    each_part([&](const Lane& lane) { reduce(lane, true); });
    each_part([&](const Lane& lane) { take(lane, 1); });
  }

 private:
  static constexpr unsigned at_once = most > 4 ? 1 : 2;  // lines of each rank that a thread takes part in

  // One thread's place in the lines `first`, `first + step`, ...
  struct Lane {
    unsigned thread, number;  // in the block; in its line
    std::uint64_t first, step;
  };

  // All threads of a warp together.
  template <typename Function>
  WAYWISER_DEVICE void each_part(Function f) {
    const std::uint64_t step = gpu_.threads() / line_lanes, tile = step * at_once;
    for (std::uint64_t first = gpu_.block() * tile; first < lines_in(work_.bytes); first += gpu_.blocks() * tile)
      gpu_.each_thread(
          [&](unsigned thread) { f(Lane{thread, thread % line_lanes, first + thread / line_lanes, step}); });
  }

  WAYWISER_DEVICE Vector16* landed(unsigned rank, unsigned shot, unsigned from, const Lane& lane, unsigned i) const {
    return line_at(terms_, rank, operation_.turn(), shot, from, lane.first + i * lane.step) + lane.number;
  }

  // The lane's two words; the last one has one word and the number of the operation.
  WAYWISER_DEVICE Vector16 load_part(const std::byte* data, std::uint64_t bytes, const Lane& lane, unsigned i) const {
    const std::uint64_t word = (lane.first + i * lane.step) * line_words + 2 * lane.number;
    Word8 low{}, high{{operation_.number(), operation_.number()}};
    if (word * sizeof(Word8) < bytes) low = load_word<Word8, exact>(data, bytes, word);
    if (lane.number + 1 < line_lanes) {
      high = Word8{};
      if ((word + 1) * sizeof(Word8) < bytes) high = load_word<Word8, exact>(data, bytes, word + 1);
    }
    return Vector16{{low.words[0], low.words[1], high.words[0], high.words[1]}};
  }
  WAYWISER_DEVICE void store_part(std::byte* data, std::uint64_t bytes, const Lane& lane, unsigned i,
                                  const Vector16& words) const {
    const std::uint64_t word = (lane.first + i * lane.step) * line_words + 2 * lane.number;
    if (word * sizeof(Word8) < bytes) store_word<exact>(data, bytes, word, Word8{{words.words[0], words.words[1]}});
    if (lane.number + 1 < line_lanes && (word + 1) * sizeof(Word8) < bytes)
      store_word<exact>(data, bytes, word + 1, Word8{{words.words[2], words.words[3]}});
  }

  WAYWISER_DEVICE std::uint64_t bytes_for(unsigned rank) const {
    return work_.has_data(me_) ? work_.bytes_of_block(work_.scattered ? rank : 0) : 0;
  }
  WAYWISER_DEVICE const std::byte* input_for(unsigned rank) const {
    return work_.input + (work_.scattered ? rank * work_.stride : 0);
  }
  WAYWISER_DEVICE bool has_line(const Lane& lane, unsigned i) const {
    return lane.first + i * lane.step < lines_in(work_.bytes);
  }

  // All loads are in flight before the first store. Lines beyond a short block are sent all the same.
  WAYWISER_DEVICE void send(const Lane& lane) {
    Vector16 words[most][at_once] = {};
    Vector16 same[at_once] = {};
    WAYWISER_UNROLL
    for (unsigned i = 0; i < at_once; ++i)
      if (!work_.scattered && has_line(lane, i)) same[i] = load_part(work_.input, bytes_for(0), lane, i);
    WAYWISER_UNROLL
    for (unsigned rank = 0; rank < most; ++rank) {
      if (rank >= ranks_ || rank == me_) continue;
      WAYWISER_UNROLL
      for (unsigned i = 0; i < at_once; ++i) {
        if (!work_.scattered) words[rank][i] = same[i];
        if (work_.scattered && has_line(lane, i)) words[rank][i] = load_part(input_for(rank), bytes_for(rank), lane, i);
      }
    }
    WAYWISER_UNROLL
    for (unsigned rank = 0; rank < most; ++rank) {
      if (rank >= ranks_ || rank == me_) continue;
      WAYWISER_UNROLL
      for (unsigned i = 0; i < at_once; ++i)
        if (has_line(lane, i)) gpu_.store_line_part(landed(rank, 0, me_, lane, i), lane.number, words[rank][i]);
    }
  }

  // 1 + a rank whose line has not come, of those of this lane.
  WAYWISER_DEVICE unsigned look(const Lane& lane, unsigned shot, Vector16 (&words)[most][at_once]) {
    unsigned missing = 0;
    WAYWISER_UNROLL
    for (unsigned rank = 0; rank < most; ++rank) {
      if (rank >= ranks_ || rank == me_) continue;
      WAYWISER_UNROLL
      for (unsigned i = 0; i < at_once; ++i)
        if (has_line(lane, i) &&
            !gpu_.load_line_part(landed(me_, shot, rank, lane, i), lane.number, operation_.number(), words[rank][i]))
          missing = rank + 1;
    }
    return missing;
  }

  // The last lane of a warp looks first: then the others need one look.
  WAYWISER_DEVICE bool receive(const Lane& lane, unsigned shot, Vector16 (&words)[most][at_once]) {
    bool arrived = true;
    if (gpu_.leads_lines(lane.thread)) arrived = operation_.wait([&] { return look(lane, shot, words); });
    return operation_.wait_together(arrived, [&] { return look(lane, shot, words); });
  }

  // The block that belongs to this rank, in the order of ranks.
  WAYWISER_DEVICE void reduce(const Lane& lane, bool send) {
    Vector16 words[most][at_once] = {};
    const unsigned block = work_.scattered ? me_ : 0;
    const std::uint64_t bytes = work_.bytes_of_block(block);
    WAYWISER_UNROLL
    for (unsigned rank = 0; rank < most; ++rank) {
      WAYWISER_UNROLL
      for (unsigned i = 0; i < at_once; ++i)
        if (rank == me_ && has_line(lane, i)) words[rank][i] = load_part(input_for(me_), bytes, lane, i);
    }
    if (!receive(lane, 0, words)) return;
    WAYWISER_UNROLL
    for (unsigned i = 0; i < at_once; ++i)
      if (has_line(lane, i)) deliver(lane, i, words, send);
  }

  WAYWISER_DEVICE void deliver(const Lane& lane, unsigned i, const Vector16 (&words)[most][at_once], bool send) {
    Accumulator<Gpu, T, Vector16> sum(words[0][i]);
    WAYWISER_UNROLL
    for (unsigned rank = 1; rank < most; ++rank)
      if (rank < ranks_) sum.add(work_.op, words[rank][i]);
    Vector16 result = sum.result(work_.op, ranks_);
    store_part(work_.output + (send ? me_ * work_.stride : 0), work_.bytes_of_block(work_.scattered ? me_ : 0), lane, i,
               result);
    if (!send) return;
    if (lane.number + 1 == line_lanes) result.words[2] = result.words[3] = operation_.number();
    WAYWISER_UNROLL
    for (unsigned rank = 0; rank < most; ++rank)
      if (rank < ranks_ && rank != me_) gpu_.store_line_part(landed(rank, 1, me_, lane, i), lane.number, result);
  }

  // Of the second shot, this rank's own block is in its place.
  WAYWISER_DEVICE void take(const Lane& lane, unsigned shot) {
    Vector16 words[most][at_once] = {};
    if (!receive(lane, shot, words)) return;
    WAYWISER_UNROLL
    for (unsigned rank = 0; rank < most; ++rank) {
      if (rank >= ranks_ || !work_.has_data(rank) || (shot == 1 && rank == me_)) continue;
      std::byte* to = work_.output + (work_.root < 0 ? rank * work_.stride : 0);
      const std::uint64_t bytes = work_.bytes_of_block(rank);
      WAYWISER_UNROLL
      for (unsigned i = 0; i < at_once; ++i) {
        if (!has_line(lane, i)) continue;
        if (rank == me_) words[rank][i] = load_part(input_for(me_), bytes, lane, i);
        store_part(to, bytes, lane, i, words[rank][i]);
      }
    }
  }

  Gpu& gpu_;
  const Terms& terms_;
  const Work& work_;
  OperationBody<Gpu> operation_;
  unsigned me_, ranks_;
};

}  // namespace waywiser::fused
