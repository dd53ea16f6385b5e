#pragma once

#include "waywiser/collective/fused/waiter.hpp"

namespace waywiser::fused {

// What every fused kernel does beside its work: which operation it is, and how it waits. `Gpu` is a block of threads:
// block(), blocks(), threads(), each_thread(f), sync(), leads(thread), join_warp(), load_packet, store_packet,
// store_far, line_word, store_line, look_at_line, is_there, word_in_line (lines.hpp; a warp together), any (its vote),
// acquire, release, peek (a look that orders only what depends on it), post (orders loads that have returned before
// it), store, add, tell, told, trap() (never returns), nanoseconds(), pause(), widen, narrow, least, greatest,
// address(rank) (for the threads to tell each other, across a sync()).
template <typename Gpu>
class OperationBody {
 public:
  WAYWISER_DEVICE OperationBody(Gpu& gpu, const Terms& terms, const Work& work)
      : gpu_(gpu), terms_(terms), description_(work.description), signature_(work.signature) {
    number_ = gpu.peek(&terms.state->progress) / most_blocks + 1;
  }

  // Stands beside everything that is sent; packets and flags have room for parts of it.
  WAYWISER_DEVICE std::uint64_t tag() const { return tag_of(number_, signature_); }
  WAYWISER_DEVICE std::uint32_t number() const { return static_cast<std::uint32_t>(number_); }
  WAYWISER_DEVICE unsigned turn() const { return number_ % 2; }

  template <typename Missing>
  WAYWISER_DEVICE void wait(Missing missing) {
    Waiter<Gpu>::wait(gpu_, missing, [this](unsigned peer, unsigned times, Seen seen) {
      return look_around(gpu_, terms_, {tag(), description_}, peer, times, seen);
    });
  }
  template <typename Missing>
  WAYWISER_DEVICE void wait_together(Missing missing) {
    Waiter<Gpu>::wait_together(gpu_, missing, [this](unsigned peer, unsigned times, Seen seen) {
      return look_around(gpu_, terms_, {tag(), description_}, peer, times, seen);
    });
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
  // Ranks in unlike operations wait for each other: the first block of each announces what it is in when it has waited
  // for a while, and all read what the others have announced.
  WAYWISER_DEVICE WAYWISER_APART static Seen look_around(Gpu& gpu, const Terms& terms, Announcement mine, unsigned peer,
                                                         unsigned times, Seen seen) {
    const std::uint64_t number = mine.tag - signature_of(mine.description);
    WAYWISER_ROLLED
    for (unsigned rank = 0; times == 1 && gpu.block() == 0 && rank < terms.layout.ranks; ++rank)
      if (rank != terms.rank) gpu.tell(announcement_at(terms, rank, terms.rank), mine);
    const Announcement told = gpu.told(announcement_at(terms, terms.rank, peer - 1));
    const std::uint64_t theirs = told.is_unlike(number, mine.description) ? told.description : no_description;
    return Waiter<Gpu>(gpu, terms.notice, terms.deadline_ns)
        .check(peer, times, seen, {mine.description, number}, theirs);
  }

  Gpu& gpu_;
  const Terms& terms_;
  std::uint64_t number_ = 0, description_, signature_;
};

}  // namespace waywiser::fused
