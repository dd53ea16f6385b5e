#pragma once

#include "waywiser/collective/device_schedule/program.hpp"
#include "waywiser/kernels/block/tag.hpp"
#include "waywiser/kernels/block/waiter.hpp"

namespace waywiser::program {

// What one block does in a start besides its messages: it finds the number, waits for other ranks and blocks, and knows
// its pieces of messages. A slot at another rank is written again two starts later, when that rank has begun the start
// between and so has ended the one that read it. Direct messages are written once it has begun this start. `Gpu` is a
// block of threads (kernels/block/README.md); every thread calls sync() equally often.
template <typename Gpu>
class ProgramStart {
 public:
  WAYWISER_DEVICE ProgramStart(Gpu& gpu, const ProgramArguments& terms)
      : gpu_(gpu), terms_(terms), number_(gpu.peek(&terms.state->progress) / most_blocks + 1) {}

  // Tells the ranks that give to this one. Earlier kernels have ended with all that they read and wrote: no fence.
  WAYWISER_DEVICE void begin() {
    if (gpu_.block() != 0) return;
    each_by_a_thread(block::max_ranks, [&](unsigned rank) {
      if (terms_.tell[rank] != nullptr) gpu_.post(terms_.tell[rank], number_);
    });
  }

  // Once for each block, before its first store to another rank: then the slots may be written. The wait comes when
  // this block's first loads are under way; only stores depend on it, so that a load without a fence will do.
  WAYWISER_DEVICE void settle() {
    if (settled_) return;
    settled_ = true;
    each_by_a_thread(block::max_ranks, [&](unsigned rank) {
      if ((terms_.gives_to >> rank & 1) != 0)
        wait(0, [&] { return gpu_.peek(terms_.begun + rank) + 1 >= number_ ? 0 : rank + 1; });
    });
    gpu_.sync();
    // All threads have read the number: the next start, which begins when this kernel has ended, has the next one.
    gpu_.each_thread([&](unsigned thread) {
      if (thread == 0)
        gpu_.add(&terms_.state->progress,
                 most_blocks / terms_.blocks + (gpu_.block() == 0 ? most_blocks % terms_.blocks : 0));
    });
  }

  // Waits until all blocks have ended the round.
  WAYWISER_DEVICE void join(std::uint32_t round) {
    if (terms_.blocks == 1) return gpu_.sync();
    const std::uint64_t mark = number_ * terms_.round_count + round;
    gpu_.sync();
    if (gpu_.block() == 0) {
      each_by_a_thread(terms_.blocks, [&](unsigned other) {
        if (other != 0) wait_for_mark(terms_.state->arrived + other, mark);
      });
      gpu_.sync();
    }
    gpu_.each_thread([&](unsigned thread) {
      if (thread != 0) return;
      gpu_.release(gpu_.block() == 0 ? &terms_.state->gate : terms_.state->arrived + gpu_.block(), mark);
      if (gpu_.block() != 0) wait_for_mark(&terms_.state->gate, mark);
    });
    gpu_.sync();
  }

 protected:
  using Waiter = block::Waiter<Gpu>;

  WAYWISER_DEVICE std::uint64_t tag() const { return block::tag_of(number_, terms_.signature); }

  // Calls f(i) for i < count, each by one thread.
  template <typename Function>
  WAYWISER_DEVICE void each_by_a_thread(unsigned count, Function f) {
    gpu_.each_thread([&](unsigned thread) {
      for (unsigned i = thread; i < count; i += gpu_.threads()) f(i);
    });
  }

  // Waits between blocks last longer, so that a block that waits for another rank reports first.
  static constexpr std::uint64_t join_extra_ns = 10'000'000'000;
  WAYWISER_DEVICE void wait_for_mark(const std::uint64_t* by, std::uint64_t mark) {
    wait(join_extra_ns, [&] { return gpu_.acquire(by) == mark ? 0 : terms_.rank + 1; });
  }
  template <typename Missing>
  WAYWISER_DEVICE void wait(std::uint64_t extra_ns, Missing missing) {
    Waiter::wait(gpu_, missing, [&](unsigned peer, unsigned times, block::Seen seen) {
      return look_around(gpu_, terms_, number_, extra_ns, peer, times, seen);
    });
  }
  template <typename Missing>
  WAYWISER_DEVICE void wait_together(Missing missing) {
    Waiter::wait_together(gpu_, missing, [&](unsigned peer, unsigned times, block::Seen seen) {
      return look_around(gpu_, terms_, number_, 0, peer, times, seen);
    });
  }
  WAYWISER_DEVICE WAYWISER_APART static block::Seen look_around(Gpu& gpu, const ProgramArguments& terms,
                                                                std::uint64_t number, std::uint64_t extra_ns,
                                                                unsigned peer, unsigned times, block::Seen seen) {
    return Waiter(gpu, terms.notice, terms.deadline_ns + extra_ns)
        .check(peer, times, seen, {0, number}, block::no_description);
  }

  WAYWISER_DEVICE std::uint32_t first_piece(const Instruction& each) const {
    return (gpu_.block() + terms_.blocks - each.first_block) % terms_.blocks;
  }
  // Before a rank has begun this start, its arrays are not this rank's to write.
  WAYWISER_DEVICE void wait_for_start(std::uint32_t peer) {
    if ((begun_ >> peer & 1) != 0) return;
    begun_ |= 1u << peer;
    gpu_.each_thread([&](unsigned thread) {
      if (thread == 0) wait(0, [&] { return gpu_.peek(terms_.begun + peer) >= number_ ? 0 : peer + 1; });
    });
    gpu_.sync();
  }

  struct Piece {
    std::uint32_t index;
    std::uint64_t begin, bytes;
  };
  // This block's pieces.
  template <typename Function>
  WAYWISER_DEVICE void each_piece(const Instruction& each, Function f) {
    for (std::uint32_t piece = first_piece(each); piece < each.pieces; piece += terms_.blocks) {
      const std::uint64_t begin = piece * each.piece, left = each.bytes - begin;
      f(Piece{piece, begin, left < each.piece ? left : each.piece});
    }
  }

  template <typename T>
  WAYWISER_DEVICE T* of_turn(T* first, std::uint64_t turn) const {
    return reinterpret_cast<T*>(reinterpret_cast<std::byte*>(first) + (number_ % 2 == 0 ? turn : 0));
  }
  WAYWISER_DEVICE std::byte* slot(const Instruction& each) const { return of_turn(each.slot, each.turn); }
  WAYWISER_DEVICE View view_of_slot(const Instruction& each) const {
    View view;
    view.data = slot(each);
    view.run = ~std::uint64_t{0};
    return view;
  }
  WAYWISER_DEVICE std::uint64_t* flag(const Instruction& each, std::uint32_t piece) const {
    return of_turn(each.flags, each.turn) + piece;
  }
  WAYWISER_DEVICE void wait_for_piece(const Instruction& each, std::uint32_t piece) {
    wait(0, [&] { return gpu_.acquire(flag(each, piece)) == tag() ? 0 : each.peer + 1; });
  }

  Gpu& gpu_;
  const ProgramArguments& terms_;
  const std::uint64_t number_;
  bool settled_ = false;
  std::uint32_t begun_ = 0;  // ranks that have begun this start, as bits
};

}  // namespace waywiser::program
