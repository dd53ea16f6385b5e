#pragma once

#include "waywiser/collective/fused/arithmetic.hpp"
#include "waywiser/collective/fused/operation_body.hpp"
#include "waywiser/kernels/block/word_access.hpp"

namespace waywiser::fused {

// Every block of threads stores its part of the data to all others, then one flag, and waits for the flags of the
// blocks with its number. Plain loads in batches let the compiler keep a batch in registers. In two shots a rank's
// first flag announces the address of its output: from then on others may store there, since the rank has read its old
// contents.
template <typename T, unsigned most, bool exact, typename Gpu>
class PushBody {
 public:
  WAYWISER_DEVICE PushBody(Gpu& gpu, const FusedArguments& terms, const FusedWork& work)
      : gpu_(gpu),
        terms_(terms),
        work_(work),
        operation_(gpu, terms, work),
        me_(terms.rank),
        ranks_(terms.layout.ranks) {}

  // Arriving data are the result, or are reduced to it.
  WAYWISER_DEVICE void run_one_shot() {
    send_blocks();
    operation_.count();
    exchange_flags();
    if (work_.reduced)
      reduce_block(false);
    else
      take_blocks(0);
  }

  // Block i goes to rank i, which reduces it and sends the result to all: directly into their outputs if possible, and
  // it tells them. Of a broadcast, rank i forwards the root's block i to all but the root.
  WAYWISER_DEVICE void run_two_shot() {
    const std::uint32_t output = output_place();
    send_blocks();
    operation_.count();
    exchange_words(
        0, [&](unsigned) { return output; },
        [&](unsigned peer, std::uint32_t place) {
          gpu_.address(peer) = result_for(peer, block::OutputPlace::of(place));
        });
    work_.reduced ? reduce_block(true) : forward_block();
    gpu_.sync();
    exchange_words(
        1, [&](unsigned peer) { return gpu_.address(peer) == sums_for(peer) ? 0u : 1u; },
        [&](unsigned peer, std::uint32_t stored) { gpu_.address(peer) = stored != 0 ? nullptr : terms_.landing[me_]; });
    if (work_.reduced ? work_.is_taken_by(me_) : !work_.has_data(me_)) take_blocks(1);
  }

 private:
  static constexpr unsigned batch = 4;
  static constexpr unsigned at_once = most > 4 ? 1 : 2;  // of each rank

  // Calls f(index of a thread's first vector, end) for each tile of this block's part; the thread's other vectors are
  // `threads` apart. All blocks of data are cut at the same places.
  template <unsigned many, typename Function>
  WAYWISER_DEVICE void each_tile(std::uint64_t bytes, Function f) {
    const std::uint64_t part = (vectors_in(work_.bytes) + gpu_.blocks() - 1) / gpu_.blocks();
    const std::uint64_t vectors = vectors_in(bytes), begin = gpu_.block() * part;
    const std::uint64_t end = begin + part < vectors ? begin + part : vectors;
    for (std::uint64_t first = begin; first < end; first += std::uint64_t{gpu_.threads()} * many)
      gpu_.each_thread([&](unsigned thread) { f(first + thread, end); });
  }
  WAYWISER_DEVICE static std::uint64_t vectors_in(std::uint64_t bytes) {
    return (bytes + sizeof(Vector16) - 1) / sizeof(Vector16);
  }

  WAYWISER_DEVICE const std::byte* input_for(unsigned rank) const {
    return work_.input + (work_.scattered ? rank * work_.stride : 0);
  }
  WAYWISER_DEVICE Vector16* landed(unsigned rank, unsigned shot, unsigned from) const {
    return reinterpret_cast<Vector16*>(
        bulk_at(terms_, rank, operation_.turn(), shot, from, (work_.bytes + 15) / 16 * 16));
  }

  template <unsigned many>
  WAYWISER_DEVICE void load(Vector16 (&words)[many], const std::byte* data, std::uint64_t bytes, std::uint64_t index,
                            std::uint64_t end) const {
    WAYWISER_UNROLL
    for (unsigned i = 0; i < many; ++i)
      if (index + i * gpu_.threads() < end)
        words[i] = block::load_word<Vector16, exact>(data, bytes, index + i * gpu_.threads());
  }
  template <unsigned many>
  WAYWISER_DEVICE void store_far(Vector16* to, const Vector16 (&words)[many], std::uint64_t index,
                                 std::uint64_t end) const {
    WAYWISER_UNROLL
    for (unsigned i = 0; i < many; ++i)
      if (index + i * gpu_.threads() < end) gpu_.store_far(to + index + i * gpu_.threads(), words[i]);
  }

  WAYWISER_DEVICE void send_blocks() {
    if (!work_.has_data(me_)) return;
    if (work_.scattered)
      each_tile<at_once>(work_.bytes, [&](std::uint64_t index, std::uint64_t end) { scatter(index, end); });
    else
      each_tile<batch>(work_.bytes, [&](std::uint64_t index, std::uint64_t end) { send_to_all(index, end); });
  }

  WAYWISER_DEVICE void send_to_all(std::uint64_t index, std::uint64_t end) {
    Vector16 words[batch] = {};
    load(words, work_.input, work_.bytes, index, end);
    for (unsigned distance = 1; distance < ranks_; ++distance) {
      const unsigned rank = (me_ + distance) % ranks_;
      if (work_.is_taken_by(rank)) store_far(landed(rank, 0, me_), words, index, end);
    }
  }

  // The loads for all ranks are in flight before the first store. Blocks at the end may be shorter.
  WAYWISER_DEVICE void scatter(std::uint64_t index, std::uint64_t end) {
    Vector16 words[most][at_once] = {};
    std::uint64_t ends[most];
    WAYWISER_UNROLL
    for (unsigned rank = 0; rank < most; ++rank) {
      ends[rank] = 0;
      if (rank >= ranks_ || rank == me_) continue;
      const std::uint64_t bytes = work_.bytes_of_block(rank), vectors = vectors_in(bytes);
      ends[rank] = vectors < end ? vectors : end;
      load(words[rank], input_for(rank), bytes, index, ends[rank]);
    }
    WAYWISER_UNROLL
    for (unsigned rank = 0; rank < most; ++rank)
      if (ends[rank] > index) store_far(landed(rank, 0, me_), words[rank], index, ends[rank]);
  }

  WAYWISER_DEVICE std::uint64_t* flag(unsigned rank, unsigned shot, unsigned from) const {
    return flag_at(terms_, rank, operation_.turn(), shot, from, gpu_.block());
  }
  WAYWISER_DEVICE std::uint64_t* told(unsigned rank, unsigned shot, unsigned from) const {
    return told_at(terms_, rank, operation_.turn(), shot, from, gpu_.block());
  }
  // Calls f(rank) for each other rank, each in a thread of its own.
  template <typename Function>
  WAYWISER_DEVICE void each_peer(Function f) {
    gpu_.each_thread([&](unsigned thread) {
      if (thread < ranks_ && thread != me_) f(thread);
    });
  }

  WAYWISER_DEVICE void exchange_flags() {
    each_peer([&](unsigned peer) { gpu_.release(flag(peer, 0, me_), operation_.tag()); });
    each_peer([&](unsigned peer) {
      operation_.wait([&] { return gpu_.acquire(flag(me_, 0, peer)) == operation_.tag() ? 0 : peer + 1; });
    });
    gpu_.sync();
  }

  // tell(rank) is sent with the flag and passed to the other's hear(rank, what). Both words are polled together.
  template <typename Tell, typename Hear>
  WAYWISER_DEVICE void exchange_words(unsigned shot, Tell tell, Hear hear) {
    each_peer([&](unsigned peer) {
      gpu_.store(told(peer, shot, me_), operation_.number() | std::uint64_t{tell(peer)} << 32);
      gpu_.release(flag(peer, shot, me_), operation_.tag());
    });
    each_peer([&](unsigned peer) {
      std::uint64_t word = 0;
      operation_.wait([&] {
        word = gpu_.peek(told(me_, shot, peer));
        const bool come = gpu_.acquire(flag(me_, shot, peer)) == operation_.tag();
        return come && static_cast<std::uint32_t>(word) == operation_.number() ? 0 : peer + 1;
      });
      hear(peer, static_cast<std::uint32_t>(word >> 32));
    });
    gpu_.sync();
  }

  WAYWISER_DEVICE const block::Exposed& exposed(unsigned slot, unsigned rank) const {
    return terms_.exposed[slot * block::max_ranks + rank];
  }

  // The place that this rank announces. Looked up on the GPU, since a graph may be older than the windows.
  WAYWISER_DEVICE std::uint32_t output_place() const {
    return block::OutputPlace::in(exposed(work_.slot, me_), work_.slot, work_.output, work_.total).word();
  }
  // The destination of the sums of this rank's block.
  WAYWISER_DEVICE std::byte* result_for(unsigned rank, const block::OutputPlace& place) const {
    const block::Exposed memory = exposed(place.slot, rank);
    if (!memory.holds(place.offset, work_.total)) return sums_for(rank);
    return memory.data + place.offset + me_ * work_.stride;
  }
  WAYWISER_DEVICE std::byte* sums_for(unsigned rank) const {
    return reinterpret_cast<std::byte*>(landed(rank, 1, me_));
  }

  // Reduces this rank's block, in rank order.
  WAYWISER_DEVICE void reduce_block(bool send) {
    const bool keep = work_.is_taken_by(me_);
    if (!keep && !send) return;
    const unsigned block = work_.scattered ? me_ : 0;
    const std::uint64_t bytes = work_.bytes_of_block(block);
    std::byte* result = work_.output + (send ? me_ * work_.stride : 0);
    each_tile<at_once>(bytes, [&](std::uint64_t index, std::uint64_t end) {
      Vector16 sums[at_once] = {};
      add_up(sums, input_for(me_), bytes, index, end);
      WAYWISER_UNROLL
      for (unsigned i = 0; i < at_once; ++i)
        if (keep && index + i * gpu_.threads() < end)
          block::store_word<exact>(result, bytes, index + i * gpu_.threads(), sums[i]);
      for (unsigned distance = 1; send && distance < ranks_; ++distance) {
        const unsigned rank = (me_ + distance) % ranks_;
        if (work_.is_taken_by(rank)) store_far(reinterpret_cast<Vector16*>(gpu_.address(rank)), sums, index, end);
      }
    });
  }

  // The root sends its own block, and keeps all blocks.
  WAYWISER_DEVICE void forward_block() {
    const bool root = work_.has_data(me_);
    const std::byte* from = root ? input_for(me_) : reinterpret_cast<const std::byte*>(landed(me_, 0, work_.root));
    const std::uint64_t bytes = work_.bytes_of_block(me_);
    each_tile<batch>(bytes, [&](std::uint64_t index, std::uint64_t end) {
      Vector16 words[batch] = {};
      load(words, from, root ? bytes : end * sizeof(Vector16), index, end);
      if (!root) keep_words(me_, words, index, end);
      for (unsigned distance = 1; distance < ranks_; ++distance) {
        const unsigned rank = (me_ + distance) % ranks_;
        if (!work_.has_data(rank)) store_far(reinterpret_cast<Vector16*>(gpu_.address(rank)), words, index, end);
      }
    });
    for (unsigned block = 0; root && work_.input != work_.output && block < ranks_; ++block)
      each_tile<batch>(work_.bytes_of_block(block), [&](std::uint64_t index, std::uint64_t end) {
        Vector16 words[batch] = {};
        load(words, input_for(block), work_.bytes_of_block(block), index, end);
        keep_words(block, words, index, end);
      });
  }
  WAYWISER_DEVICE void keep_words(unsigned block, const Vector16 (&words)[batch], std::uint64_t index,
                                  std::uint64_t end) const {
    WAYWISER_UNROLL
    for (unsigned i = 0; i < batch; ++i)
      if (index + i * gpu_.threads() < end)
        block::store_word<exact>(work_.output + block * work_.stride, work_.bytes_of_block(block),
                                 index + i * gpu_.threads(), words[i]);
  }

  WAYWISER_DEVICE void add_up(Vector16 (&sums)[at_once], const std::byte* own, std::uint64_t bytes, std::uint64_t index,
                              std::uint64_t end) const {
    Vector16 words[most][at_once] = {};
    WAYWISER_UNROLL
    for (unsigned rank = 0; rank < most; ++rank) {
      if (rank >= ranks_) continue;
      const bool mine = rank == me_;
      const auto* from = mine ? own : reinterpret_cast<const std::byte*>(landed(me_, 0, rank));
      load(words[rank], from, mine ? bytes : end * sizeof(Vector16), index, end);
    }
    reduce_words<Gpu, T>(work_, ranks_, words, sums);
  }

  WAYWISER_DEVICE void take_blocks(unsigned shot) {
    each_tile<at_once>(work_.bytes, [&](std::uint64_t index, std::uint64_t end) { take(shot, index, end); });
  }

  // In the second shot this rank's own block, and those of ranks that stored them directly, are already in place.
  WAYWISER_DEVICE void take(unsigned shot, std::uint64_t index, std::uint64_t end) {
    Vector16 words[most][at_once] = {};
    std::uint64_t ends[most];
    WAYWISER_UNROLL
    for (unsigned rank = 0; rank < most; ++rank) {
      ends[rank] = 0;
      if (rank >= ranks_ || (shot == 0 && !work_.has_data(rank))) continue;
      if (shot == 1 && (rank == me_ || gpu_.address(rank) == nullptr)) continue;
      const std::uint64_t bytes = work_.bytes_of_block(rank), vectors = vectors_in(bytes);
      ends[rank] = vectors < end ? vectors : end;
      const bool mine = rank == me_;
      const auto* from = mine ? input_for(me_) : reinterpret_cast<const std::byte*>(landed(me_, shot, rank));
      load(words[rank], from, mine ? bytes : ends[rank] * sizeof(Vector16), index, ends[rank]);
    }
    WAYWISER_UNROLL
    for (unsigned rank = 0; rank < most; ++rank) {
      std::byte* to = work_.output + (work_.root < 0 || shot == 1 ? rank * work_.stride : 0);
      WAYWISER_UNROLL
      for (unsigned i = 0; i < at_once; ++i)
        if (index + i * gpu_.threads() < ends[rank])
          block::store_word<exact>(to, work_.bytes_of_block(rank), index + i * gpu_.threads(), words[rank][i]);
    }
  }

  Gpu& gpu_;
  const FusedArguments& terms_;
  const FusedWork& work_;
  OperationBody<Gpu> operation_;
  unsigned me_, ranks_;
};

}  // namespace waywiser::fused
