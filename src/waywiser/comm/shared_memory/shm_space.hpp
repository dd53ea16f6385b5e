#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "waywiser/base/units.hpp"

namespace waywiser {

// The file system in /dev/shm, from which UCX allocates when it opens and whenever messages come that nobody has
// received yet. UCX does not survive that it is full.
struct ShmSpace {
  std::uint64_t device = 0;  // equal for ranks that share it
  Bytes free = 0;            // 0 if it is not there, or this process may not write to it
};
ShmSpace shm_space() noexcept;

// What UCX allocates at a time: 512 buffers of 8,256 bytes and, the first time, a queue (UCX 1.22).
inline constexpr Bytes shm_step = Bytes{4400} << 10;
// What must be free for each rank that opens UCX: it may grow twice.
inline constexpr Bytes shm_of_rank = 3 * shm_step;

// Looks at the free space while UCX receives: often enough that the ranks cannot fill it between two looks.
class ShmGuard {
 public:
  // So many ranks share it.
  void watch(unsigned ranks) noexcept {
    ranks_ = ranks;
    look_at_ = 0;
  }
  void note(unsigned events) noexcept { handled_ += events; }
  bool is_due() const noexcept { return handled_ >= look_at_; }
  // Why UCX might soon find no room; empty: it has some.
  std::string look() noexcept;

 private:
  unsigned ranks_ = 0;
  std::uint64_t handled_ = 0, look_at_ = std::numeric_limits<std::uint64_t>::max();  // events of UCX
};

}  // namespace waywiser
