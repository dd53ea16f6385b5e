#pragma once

#include "waywiser/kernels/block/notice.hpp"
#include "waywiser/kernels/device_code.hpp"

namespace waywiser::block {

// A wait polls host memory only once in so many checks of the clock: a GPU serialises the reads of one host word (0.6
// us each), and every warp may be waiting. If it polled more often, one late rank would make all others late.
inline constexpr unsigned looks_at_host = 64;

// What a rank that waits tells of itself.
struct Self {
  std::uint64_t description, number;
};
inline constexpr std::uint64_t no_description = ~std::uint64_t{0};
// What it remembers from one look around to the next: when the first was, and when it first saw something wrong.
struct Seen {
  std::uint64_t start = 0, wrong_at = 0;
};

// How a block of threads waits for other ranks. It goes on when they have come, and never without them: the host is
// told why, and the kernel traps, so that nothing behind it takes what is not there for data. `Gpu`: a block of threads
// (README.md). What is done now and then while it waits is kept apart: kernels are through sooner without it.
template <typename Gpu>
class Waiter {
 public:
  WAYWISER_DEVICE Waiter(Gpu& gpu, Notice* notice, std::uint64_t deadline_ns)
      : gpu_(gpu), notice_(notice), deadline_ns_(deadline_ns) {}

  // Asks `missing` until it answers 0; else it answers 1 + a rank that is waited for. look_around(peer, times, seen) is
  // called now and then, `times` from 1, with what it has answered before; it ends in check().
  template <typename Missing, typename LookAround>
  WAYWISER_DEVICE static void wait(Gpu& gpu, Missing missing, LookAround look_around) {
    Seen seen;
    for (unsigned look = 1;; ++look) {
      const unsigned peer = missing();
      if (peer == 0) return;
      gpu.pause();
      if (look % Gpu::looks == 0) seen = look_around(peer, look / Gpu::looks, seen);
    }
  }

  // The same for all threads of a warp together, until none misses anything. They look with one load: threads that see
  // the tag of a line later than others see its data would take what was there before for what has come.
  template <typename Missing, typename LookAround>
  WAYWISER_DEVICE static void wait_together(Gpu& gpu, Missing missing, LookAround look_around) {
    Seen seen;
    for (unsigned look = 1;; ++look) {
      gpu.join_warp();  // some have looked around, or have stored what came before
      const unsigned peer = missing();
      if (!gpu.any(peer != 0)) return;
      gpu.pause();
      if (look % Gpu::looks == 0 && peer != 0) seen = look_around(peer, look / Gpu::looks, seen);
    }
  }

  // Traps when it is over. `self` is told to the host; `theirs`: what the rank is in instead, or no_description.
  WAYWISER_DEVICE Seen check(unsigned peer, unsigned times, Seen seen, const Self& self, std::uint64_t theirs) const {
    const std::uint64_t now = gpu_.nanoseconds();
    if (seen.start == 0) seen.start = now;
    if (theirs != no_description) give_up(Reason::unlike, peer, self, theirs);
    if (now - seen.start >= deadline_ns_) give_up(Reason::late, peer, self, 0);
    if (times % looks_at_host == 0 && gpu_.acquire(&notice_->stop) != 0) give_up(Reason::stopped, peer, self, 0);
    return seen;
  }

 private:
  // The host reads the other words only when the last one is there; of several threads the first counts.
  WAYWISER_DEVICE void give_up(Reason reason, unsigned peer, const Self& self, std::uint64_t theirs) const {
    if (gpu_.acquire(&notice_->failed) == 0) {
      gpu_.store(&notice_->mine, self.description);
      gpu_.store(&notice_->theirs, theirs);
      gpu_.store(&notice_->number, self.number);
      gpu_.release(&notice_->failed, peer | static_cast<std::uint64_t>(reason) << 32);
    }
    while (gpu_.acquire(&notice_->failed) == 0) gpu_.pause();  // it has got there
    gpu_.trap();
  }

  Gpu& gpu_;
  Notice* notice_;
  std::uint64_t deadline_ns_;
};

}  // namespace waywiser::block
