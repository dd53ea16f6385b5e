#pragma once

#include "waywiser/collective/fused/arithmetic.hpp"
#include "waywiser/collective/fused/operation_body.hpp"
#include "waywiser/kernels/block/word_access.hpp"

namespace waywiser::fused {

// Every rank sends packets to all others and receives theirs: no barrier and no fence, since each packet carries its
// own flag. At most `most` ranks. One lane of a warp polls first: then the others need one poll.
template <typename T, unsigned most, bool exact, typename Gpu>
class LlBody {
 public:
  WAYWISER_DEVICE LlBody(Gpu& gpu, const FusedArguments& terms, const FusedWork& work)
      : gpu_(gpu), terms_(terms), work_(work), operation_(gpu, terms, work) {}

  // Always sends first: then the input is read while the number of the operation is still being loaded.
  WAYWISER_DEVICE void run() {
    each_unit([&](unsigned, std::uint64_t unit, bool active) {
      if (active) send(unit);
    });
    operation_.count();
    each_unit([&](unsigned thread, std::uint64_t unit, bool active) { take(thread, unit, active); });
  }

 private:
  // Calls f(thread, unit, whether the unit exists): all threads of a warp together.
  template <typename Function>
  WAYWISER_DEVICE void each_unit(Function f) {
    const std::uint64_t units = (work_.bytes + sizeof(block::Word8) - 1) / sizeof(block::Word8);
    for (std::uint64_t first = std::uint64_t{gpu_.block()} * gpu_.threads(); first < units;
         first += std::uint64_t{gpu_.blocks()} * gpu_.threads())
      gpu_.each_thread([&](unsigned thread) { f(thread, first + thread, first + thread < units); });
  }

  WAYWISER_DEVICE block::Word8 mine_for(unsigned rank, std::uint64_t unit) const {
    return block::load_word<block::Word8, exact>(work_.input + (work_.scattered ? rank * work_.stride : 0), work_.bytes,
                                                 unit);
  }

  WAYWISER_DEVICE void send(std::uint64_t unit) {
    block::Word8 word{};
    if (!work_.scattered && work_.has_data(terms_.rank)) word = mine_for(0, unit);
    WAYWISER_UNROLL
    for (unsigned rank = 0; rank < most; ++rank) {
      if (rank >= terms_.layout.ranks || rank == terms_.rank) continue;
      const block::Word8 sent = work_.scattered ? mine_for(rank, unit) : word;
      gpu_.store_packet(packet_at(terms_, rank, operation_.turn(), terms_.rank, unit), sent, operation_.tag());
    }
  }

  WAYWISER_DEVICE void take(unsigned thread, std::uint64_t unit, bool active) {
    block::Word8 words[most] = {};
    if (active && work_.has_data(terms_.rank)) keep_own(mine_for(terms_.rank, unit), words);
    WAYWISER_ROLLED
    for (unsigned turn = 0; turn < 2; ++turn) {
      if (active && gpu_.leads(thread) == (turn == 0)) operation_.wait([&] { return look(unit, words); });
      gpu_.join_warp();
    }
    if (active) deliver(unit, words);
  }

  WAYWISER_DEVICE void keep_own(const block::Word8& word, block::Word8 (&words)[most]) const {
    WAYWISER_UNROLL
    for (unsigned rank = 0; rank < most; ++rank)
      if (rank == terms_.rank) words[rank] = word;
  }

  // Returns 1 + a rank whose packet has not arrived; 0: all have.
  WAYWISER_DEVICE unsigned look(std::uint64_t unit, block::Word8 (&words)[most]) {
    block::LlPacket packets[most];
    WAYWISER_UNROLL
    for (unsigned rank = 0; rank < most; ++rank)
      if (rank < terms_.layout.ranks && rank != terms_.rank)
        packets[rank] = gpu_.load_packet(packet_at(terms_, terms_.rank, operation_.turn(), rank, unit));
    unsigned missing = 0;
    WAYWISER_UNROLL
    for (unsigned rank = 0; rank < most; ++rank) {
      if (rank >= terms_.layout.ranks || rank == terms_.rank) continue;
      words[rank] = block::Word8{{packets[rank].low, packets[rank].high}};
      if (!packets[rank].is_of(operation_.tag())) missing = rank + 1;
    }
    return missing;
  }

  WAYWISER_DEVICE void deliver(std::uint64_t unit, const block::Word8 (&words)[most]) {
    if (!work_.is_taken_by(terms_.rank)) return;
    const unsigned ranks = terms_.layout.ranks;
    if (work_.reduced) return deliver_sum(unit, words);
    WAYWISER_UNROLL
    for (unsigned rank = 0; rank < most; ++rank)
      if (rank < ranks && work_.has_data(rank))
        block::store_word<exact>(work_.output + (work_.root < 0 ? rank * work_.stride : 0), work_.bytes, unit,
                                 words[rank]);
  }

  WAYWISER_DEVICE void deliver_sum(std::uint64_t unit, const block::Word8 (&words)[most]) {
    const unsigned ranks = terms_.layout.ranks;
    if constexpr (std::is_same_v<T, RareNumber>) {
      block::store_word<exact>(work_.output, work_.bytes, unit,
                               rare_reduced<Gpu>(work_.type, work_.op, ranks, words, 1));
    } else {
      with_combination<Gpu>(work_.op, [&](auto combination) {
        Accumulator<Gpu, T, block::Word8> sum(words[0]);
        WAYWISER_UNROLL
        for (unsigned rank = 1; rank < most; ++rank)
          if (rank < ranks) sum.add(combination, words[rank]);
        block::store_word<exact>(work_.output, work_.bytes, unit, sum.result(work_.op, ranks));
      });
    }
  }

  Gpu& gpu_;
  const FusedArguments& terms_;
  const FusedWork& work_;
  OperationBody<Gpu> operation_;
};

}  // namespace waywiser::fused
