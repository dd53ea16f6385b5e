#pragma once

#include "waywiser/kernels/block/waiter.hpp"

namespace waywiser::fused {

// What every fused kernel does besides its data: it finds the operation's number, and waits. `Gpu`: a block of threads
// (kernels/block/README.md).
template <typename Gpu>
class OperationBody {
 public:
  WAYWISER_DEVICE OperationBody(Gpu& gpu, const FusedArguments& terms, const FusedWork& work)
      : gpu_(gpu), terms_(terms), description_(work.description), signature_(work.signature) {
    number_ = gpu.peek(&terms.state->progress) / most_blocks + 1;
  }

  // Accompanies all data sent; packets and flags have room for parts of it.
  WAYWISER_DEVICE std::uint64_t tag() const { return block::tag_of(number_, signature_); }
  WAYWISER_DEVICE std::uint32_t number() const { return static_cast<std::uint32_t>(number_); }
  WAYWISER_DEVICE unsigned turn() const { return number_ % 2; }

  template <typename Missing>
  WAYWISER_DEVICE void wait(Missing missing) {
    block::Waiter<Gpu>::wait(gpu_, missing, [this](unsigned peer, unsigned times, block::Seen seen) {
      return look_around(gpu_, terms_, {tag(), description_}, peer, times, seen);
    });
  }
  template <typename Missing>
  WAYWISER_DEVICE void wait_together(Missing missing) {
    block::Waiter<Gpu>::wait_together(gpu_, missing, [this](unsigned peer, unsigned times, block::Seen seen) {
      return look_around(gpu_, terms_, {tag(), description_}, peer, times, seen);
    });
  }

  // All threads call it after sending, when this block knows the number. Once all blocks have counted, the operation
  // has ended for the next one, which begins when this kernel has completed.
  WAYWISER_DEVICE void count() {
    gpu_.sync_before_waits();
    gpu_.each_thread([&](unsigned thread) {
      if (thread == 0) gpu_.add(&terms_.state->progress, terms_.share + (gpu_.block() == 0 ? terms_.rest : 0));
    });
  }

 private:
  // Ranks in differing operations would wait for each other: after a while the first block of each rank announces its
  // operation, and all read the others' announcements.
  WAYWISER_DEVICE WAYWISER_APART static block::Seen look_around(Gpu& gpu, const FusedArguments& terms,
                                                                block::Announcement mine, unsigned peer, unsigned times,
                                                                block::Seen seen) {
    const std::uint64_t number = mine.tag - block::signature_of(mine.description);
    WAYWISER_ROLLED
    for (unsigned rank = 0; times == 1 && gpu.block() == 0 && rank < terms.layout.ranks; ++rank)
      if (rank != terms.rank) gpu.tell(announcement_at(terms, rank, terms.rank), mine);
    const block::Announcement told = gpu.told(announcement_at(terms, terms.rank, peer - 1));
    const std::uint64_t theirs = told.is_unlike(number, mine.description) ? told.description : block::no_description;
    return block::Waiter<Gpu>(gpu, terms.notice, terms.deadline_ns)
        .check(peer, times, seen, {mine.description, number}, theirs);
  }

  Gpu& gpu_;
  const FusedArguments& terms_;
  std::uint64_t number_ = 0, description_, signature_;
};

}  // namespace waywiser::fused
