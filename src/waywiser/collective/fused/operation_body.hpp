#pragma once

#include "waywiser/collective/fused/landing.hpp"

namespace waywiser::fused {

// What every fused kernel does beside its work: which operation it is, and how it waits. `Gpu` is a block of threads:
// block(), blocks(), threads(), each_thread(f), sync(), leads(thread), join_warp(), load_packet, store_packet,
// store_far, line_word, store_line, look_at_line, is_there, word_in_line (lines.hpp; a warp together), any (its vote),
// acquire, release, peek (a look that orders only what depends on it), post (orders loads that have returned before
// it), load_state, store, add, nanoseconds(), pause(), widen, narrow, address(rank) (for the threads to tell each
// other, across a sync()).
template <typename Gpu>
class OperationBody {
 public:
  WAYWISER_DEVICE OperationBody(Gpu& gpu, const Terms& terms) : gpu_(gpu), terms_(terms) {
    const State state = gpu.load_state(terms.state);
    number_ = state.progress / most_blocks + 1;
    failed_ = state.failed_peer != 0;
  }

  // Packets and flags hold 32 bits of it, lines all.
  WAYWISER_DEVICE std::uint32_t number() const { return static_cast<std::uint32_t>(number_); }
  WAYWISER_DEVICE std::uint64_t long_number() const { return number_; }
  WAYWISER_DEVICE unsigned turn() const { return number_ % 2; }
  WAYWISER_DEVICE bool failed() const { return failed_; }

  // Asks `missing` until it answers 0; else it answers 1 + a rank that is waited for. False: the deadline has passed,
  // which ends this and all later operations.
  template <typename Missing>
  WAYWISER_DEVICE bool wait(Missing missing) {
    std::uint64_t start = 0;
    for (unsigned look = 1;; ++look) {
      const unsigned peer = missing();
      if (peer == 0) return true;
      gpu_.pause();
      if (!is_over(look, start)) continue;
      fail(peer);
      return false;
    }
  }

  // The same for all threads of a warp together, until none misses anything.
  template <typename Missing>
  WAYWISER_DEVICE bool wait_together(Missing missing) {
    std::uint64_t start = 0;
    for (unsigned look = 1;; ++look) {
      const unsigned peer = missing();
      if (!gpu_.any(peer != 0)) return true;
      gpu_.pause();
      if (!gpu_.any(is_over(look, start))) continue;
      if (peer != 0) fail(peer);
      return false;
    }
  }

  // What the peer tells with its flag; 0 if it has not come. It may already be that of the next operation where this
  // one ends with no further flag to that peer.
  WAYWISER_DEVICE std::uint32_t wait_for_flag(unsigned peer, const std::uint64_t* flag) {
    std::uint64_t seen = 0;
    const bool come = wait([&] {
      seen = gpu_.acquire(flag);
      return static_cast<std::int32_t>(static_cast<std::uint32_t>(seen) - number()) >= 0 ? 0 : peer + 1;
    });
    return come ? static_cast<std::uint32_t>(seen >> 32) : 0;
  }

  // For all threads, once they have sent: this block knows the number. Counted by all blocks, the operation has ended
  // as far as the next one is concerned, which begins when this kernel has completed.
  WAYWISER_DEVICE void count() {
    gpu_.sync();
    gpu_.each_thread([&](unsigned thread) {
      if (thread == 0) gpu_.add(&terms_.state->progress, terms_.share + (gpu_.block() == 0 ? terms_.rest : 0));
    });
  }

 private:
  // After so many looks; `start` is when the clock was first looked at.
  WAYWISER_DEVICE bool is_over(unsigned look, std::uint64_t& start) {
    if (look % Gpu::looks != 0) return false;
    const std::uint64_t now = gpu_.nanoseconds();
    if (start == 0) start = now;
    const bool ask_host = look % (Gpu::looks * looks_at_host) == 0;
    return now - start >= terms_.deadline_ns || ended(ask_host);
  }
  // Another thread has failed, or the host wants the end.
  WAYWISER_DEVICE bool ended(bool ask_host) {
    if (gpu_.load_state(terms_.state).failed_peer != 0) return true;
    return ask_host && gpu_.acquire(&terms_.notice->stop) != 0;
  }

  // The host reads the number only when there is a peer.
  WAYWISER_DEVICE void fail(unsigned peer) {
    gpu_.store(&terms_.state->failed_number, number());
    gpu_.store(&terms_.state->failed_peer, peer);
    gpu_.store(&terms_.notice->failed_number, number());
    gpu_.release(&terms_.notice->failed_peer, peer);
  }

  Gpu& gpu_;
  const Terms& terms_;
  std::uint64_t number_ = 0;
  bool failed_ = false;
};

}  // namespace waywiser::fused
