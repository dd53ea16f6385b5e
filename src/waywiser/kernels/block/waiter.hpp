#pragma once

#include "waywiser/kernels/block/notice.hpp"
#include "waywiser/kernels/device_code.hpp"

namespace waywiser::block {

// A wait polls host memory only once every `looks_at_host` clock checks: GPU reads of one host word serialise (0.6 us
// each), and every warp may be waiting. With more frequent polls, one late rank would delay all others.
inline constexpr unsigned looks_at_host = 64;

// What a waiting rank reports about itself.
struct Self {
  std::uint64_t description, number;
};
inline constexpr std::uint64_t no_description = ~std::uint64_t{0};
// The state between two calls of look_around(): the time of the first call, and of the first sight of an error.
struct Seen {
  std::uint64_t start = 0, wrong_at = 0;
};

// Waits of a block of threads for other ranks. It continues when they have come, and never without them: otherwise it
// tells the host why, and the kernel traps, so that no later work uses missing data. Where the context has to outlive
// that (Notice::kept), the threads that wait leave the kernel, and so does each that would meet one of them: nothing is
// sent on, and what follows the call in its stream (on_stream/guard.hpp) spoils the output. `Gpu`: a block of threads
// (README.md). Rare work during a wait is kept in separate functions, which makes kernels faster.
template <typename Gpu>
class Waiter {
 public:
  WAYWISER_DEVICE Waiter(Gpu& gpu, Notice* notice, std::uint64_t deadline_ns)
      : gpu_(gpu), notice_(notice), deadline_ns_(deadline_ns) {}

  // Polls `missing` until it returns 0; otherwise it returns 1 + a rank waited for. Now and then calls
  // look_around(peer, times, seen), with `times` from 1 and its last result; it must end in check().
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

  // The same for all threads of a warp together, until none misses anything. They poll with one load: if a thread saw
  // the tag of a line later than others see its data, old data would be taken for new.
  template <typename Missing, typename LookAround>
  WAYWISER_DEVICE static void wait_together(Gpu& gpu, Missing missing, LookAround look_around) {
    Seen seen;
    for (unsigned look = 1;; ++look) {
      gpu.join_warp();  // threads may have diverged in look_around() or in earlier stores
      const unsigned peer = missing();
      if (gpu.all(peer == 0)) return;
      gpu.pause();
      if (look % Gpu::looks == 0 && peer != 0) seen = look_around(peer, look / Gpu::looks, seen);
      if constexpr (Gpu::may_leave)
        if (look % Gpu::looks == 0) gpu.join_whole_warp();
    }
  }

  // Traps, or leaves, if the wait is over. The host gets `self`; `theirs`: the operation that the rank is in instead,
  // or no_description.
  WAYWISER_DEVICE Seen check(unsigned peer, unsigned times, Seen seen, const Self& self, std::uint64_t theirs) const {
    const std::uint64_t now = gpu_.nanoseconds();
    if (seen.start == 0) seen.start = now;
    if (theirs != no_description) give_up(Reason::unlike, peer, self, theirs);
    if (now - seen.start >= deadline_ns_) give_up(Reason::late, peer, self, 0);
    if (times % looks_at_host == 0 && gpu_.acquire(&notice_->stop) != 0) give_up(Reason::stopped, peer, self, 0);
    return seen;
  }

 private:
  // The host reads the other words only after the last one is set; of several threads the first one counts.
  WAYWISER_DEVICE void give_up(Reason reason, unsigned peer, const Self& self, std::uint64_t theirs) const {
    if (gpu_.acquire(&notice_->failed) == 0) {
      gpu_.store(&notice_->mine, self.description);
      gpu_.store(&notice_->theirs, theirs);
      gpu_.store(&notice_->number, self.number);
      gpu_.release(&notice_->failed, peer | static_cast<std::uint64_t>(reason) << 32);
    }
    while (gpu_.acquire(&notice_->failed) == 0) gpu_.pause();  // until the host can see it
    if constexpr (Gpu::may_leave) {
      const std::uint64_t kept = gpu_.acquire(&notice_->kept);
      if (kept == 0) gpu_.trap();
      gpu_.release(reinterpret_cast<std::uint32_t*>(kept), 1u);
      gpu_.leave();
    } else {
      gpu_.trap();
    }
  }

  Gpu& gpu_;
  Notice* notice_;
  std::uint64_t deadline_ns_;
};

}  // namespace waywiser::block
