#pragma once

#include <type_traits>

#include "waywiser/heap/device/proxy_ring.hpp"
#include "waywiser/heap/device/terms.hpp"
#include "waywiser/kernels/device_code.hpp"

namespace waywiser::one_sided {

// The memory of a heap as a block of threads reaches it. An address of this rank's own memory names the same place at
// every rank: it is symmetric.
template <typename Gpu>
class ReachedHeap {
 public:
  WAYWISER_DEVICE ReachedHeap(Gpu& gpu, const HeapTerms& terms) : gpu_(gpu), terms_(terms) {}

  WAYWISER_DEVICE int rank() const { return terms_.rank; }
  WAYWISER_DEVICE int size() const { return terms_.size; }
  WAYWISER_DEVICE Gpu& gpu() const { return gpu_; }
  WAYWISER_DEVICE const HeapTerms& terms() const { return terms_; }

  // The symmetric address of this offset, in bytes.
  template <typename T>
  WAYWISER_DEVICE T* at(std::uint64_t offset) const {
    return reinterpret_cast<T*>(terms_.ranks[terms_.rank] + offset);
  }
  // Where the memory at this symmetric address is at a rank; nullptr if stores do not reach it (shmem_ptr).
  template <typename T>
  WAYWISER_DEVICE T* pointer(T* symmetric, int rank) const {
    const std::uint64_t offset = offset_of(symmetric);
    check_rank(rank);
    return terms_.ranks[rank] == nullptr ? nullptr : reinterpret_cast<T*>(terms_.ranks[rank] + offset);
  }
  // The same for an access to `count` elements. Stops the kernel unless all of them lie in the heap and are reached.
  template <typename T>
  WAYWISER_DEVICE T* place(T* symmetric, std::uint64_t count, int rank) const {
    if (rank == opened) return symmetric;
    const std::uint64_t offset = checked_offset(symmetric, count, rank);
    if (terms_.ranks[rank] == nullptr) stop(FaultReason::not_reached, rank, offset, count * sizeof(T));
    return reinterpret_cast<T*>(terms_.ranks[rank] + offset);
  }

  // Whether the host carries accesses to a rank.
  WAYWISER_DEVICE bool is_proxied(int rank) const {
    return terms_.ring != nullptr && rank >= 0 && rank < terms_.size && terms_.ranks[rank] == nullptr;
  }
  WAYWISER_DEVICE bool has_proxy() const { return terms_.ring != nullptr; }
  // Stops the kernel unless the elements lie in the heap.
  template <typename T>
  WAYWISER_DEVICE std::uint64_t checked_offset(T* symmetric, std::uint64_t count, int rank) const {
    const std::uint64_t offset = offset_of(symmetric);
    check_rank(rank);
    if (offset > terms_.bytes || count > (terms_.bytes - offset) / sizeof(T))
      stop(FaultReason::outside, rank, offset, count * sizeof(T));
    return offset;
  }

  // Polls look() until it says that a wait is over. At the deadline tell() returns the report for the host, and the
  // kernel stops; so it does when the group has failed.
  template <typename Look, typename Tell>
  WAYWISER_DEVICE void wait(Look look, Tell tell) const {
    std::uint64_t start = 0;
    for (unsigned looks = 1; !look(); ++looks) {
      gpu_.pause();
      if (looks % Gpu::looks != 0) continue;
      const std::uint64_t now = gpu_.nanoseconds();
      if (start == 0) start = now;
      if (looks / Gpu::looks % looks_at_host == 0 && gpu_.acquire(&terms_.notice->stopped) != 0)
        stop(FaultReason::stopped, any_rank, 0, 0);
      if (now - start >= terms_.deadline_ns) tell();
    }
  }
  // A word that did not become what was wanted in time. `from`: the rank that should have changed it.
  template <typename Word>
  WAYWISER_DEVICE void stop_late(const Word* word, Comparison how, Word wanted, Word seen, int from) const {
    if (gpu_.acquire(&terms_.notice->failed) == 0) {
      gpu_.store(&terms_.notice->wanted, static_cast<std::uint64_t>(wanted));
      gpu_.store(&terms_.notice->seen, static_cast<std::uint64_t>(seen));
      gpu_.store(&terms_.notice->comparison, static_cast<std::uint32_t>(how));
    }
    stop(FaultReason::late, from, offset_of(word), sizeof(Word));
  }
  // A message that is longer than its inbox.
  WAYWISER_DEVICE void stop_too_long(std::uint64_t inbox, std::uint64_t bytes, int rank) const {
    stop(FaultReason::too_long, rank, inbox, bytes);
  }
  // A call of a team whose arrays overlap.
  template <typename T>
  WAYWISER_DEVICE void stop_overlap(const T* destination, const T* source, std::uint64_t bytes) const {
    if (gpu_.acquire(&terms_.notice->failed) == 0) gpu_.store(&terms_.notice->wanted, offset_of(source));
    stop(FaultReason::overlap, any_rank, offset_of(destination), bytes);
  }

 protected:
  template <typename T>
  WAYWISER_DEVICE std::uint64_t offset_of(const T* symmetric) const {
    return reinterpret_cast<std::uintptr_t>(symmetric) - reinterpret_cast<std::uintptr_t>(terms_.ranks[terms_.rank]);
  }
  WAYWISER_DEVICE void check_rank(int rank) const {
    if (rank < 0 || rank >= terms_.size) stop(FaultReason::no_rank, rank, 0, 0);
  }
  // Of several threads the first one counts.
  WAYWISER_DEVICE void stop(FaultReason reason, int rank, std::uint64_t offset, std::uint64_t bytes) const {
    FaultNotice& notice = *terms_.notice;
    if (gpu_.acquire(&notice.failed) == 0) {
      gpu_.store(&notice.offset, offset);
      gpu_.store(&notice.bytes, bytes);
      gpu_.release(&notice.failed, static_cast<std::uint64_t>(reason) << 32 | static_cast<std::uint32_t>(rank + 1));
    }
    while (gpu_.acquire(&notice.failed) == 0) gpu_.pause();  // until the host can see it
    gpu_.trap();
  }

 private:
  Gpu& gpu_;
  const HeapTerms& terms_;
};

}  // namespace waywiser::one_sided
