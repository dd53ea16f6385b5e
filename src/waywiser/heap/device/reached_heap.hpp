#pragma once

#include <type_traits>

#include "waywiser/heap/device/proxy_ring.hpp"
#include "waywiser/heap/device/stop.hpp"
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
    return reinterpret_cast<T*>(terms_.own + offset);
  }
  // Where the memory at this symmetric address is at a rank; nullptr if stores do not reach it (shmem_ptr).
  template <typename T>
  WAYWISER_DEVICE T* pointer(T* symmetric, int rank) const {
    if (!is_rank(rank)) stop(FaultReason::no_rank, rank, 0, 0);
    return terms_.ranks[rank] == nullptr ? nullptr : reinterpret_cast<T*>(terms_.ranks[rank] + offset_of(symmetric));
  }
  // The same for an access to `count` elements; nullptr too if they do not lie in the heap, or there is no such rank.
  template <typename T>
  WAYWISER_DEVICE T* straight(T* symmetric, std::uint64_t count, int rank) const {
    if (!is_rank(rank)) return rank == opened && !KnowsHeap<Gpu> ? symmetric : nullptr;
    std::byte* memory = terms_.ranks[rank];
    const std::uint64_t offset = offset_of(symmetric);
    if (memory == nullptr || offset > terms_.bytes || count > (terms_.bytes - offset) / sizeof(T)) return nullptr;
    return reinterpret_cast<T*>(memory + offset);
  }
  // The same; stops the kernel instead of nullptr.
  template <typename T>
  WAYWISER_DEVICE T* place(T* symmetric, std::uint64_t count, int rank) const {
    T* there = straight(symmetric, count, rank);
    if (there == nullptr) stop_access<Gpu>({gpu_, terms_}, symmetric, bytes_of(count, sizeof(T)), rank);
    return there;
  }

  WAYWISER_DEVICE std::uint64_t offset_of(const void* symmetric) const {
    return reinterpret_cast<std::uintptr_t>(symmetric) - reinterpret_cast<std::uintptr_t>(terms_.own);
  }

  // Whether the host carries accesses to a rank.
  WAYWISER_DEVICE bool is_proxied(int rank) const {
    return has_proxy() && is_rank(rank) && terms_.ranks[rank] == nullptr;
  }
  WAYWISER_DEVICE bool has_proxy() const { return with_proxy && terms_.ring != nullptr; }
  // Stops the kernel unless the elements lie in the heap.
  template <typename T>
  WAYWISER_DEVICE std::uint64_t checked_offset(T* symmetric, std::uint64_t count, int rank) const {
    return checked_offset(symmetric, count, sizeof(T), rank);
  }
  WAYWISER_DEVICE std::uint64_t checked_offset(const void* symmetric, std::uint64_t count, std::uint64_t element,
                                               int rank) const {
    const std::uint64_t offset = offset_of(symmetric);
    if (!is_rank(rank) || !has(offset, count, element))
      stop_access<Gpu>({gpu_, terms_}, symmetric, bytes_of(count, element), rank);
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
  // The same for what the host answers, with fewer registers. False: the kernel is to stop, for why_ended().
  template <typename Look>
  WAYWISER_DEVICE bool wait_for_host(Look look) const {
    constexpr unsigned unit = 24;  // of time, 2^24 ns: 17 ms
    const auto start = static_cast<std::uint32_t>(gpu_.nanoseconds() >> unit);
    while (!look()) {
      gpu_.pause();
      const std::uint64_t now = gpu_.nanoseconds();
      if (static_cast<std::uint32_t>(now >> unit) - start > static_cast<std::uint32_t>(terms_.deadline_ns >> unit))
        return false;
      if ((now >> 14) % looks_at_host == 0 && gpu_.acquire(&terms_.notice->stopped) != 0) return false;
    }
    return true;
  }
  WAYWISER_DEVICE FaultReason why_ended() const {
    return gpu_.acquire(&terms_.notice->stopped) != 0 ? FaultReason::stopped : FaultReason::proxy_late;
  }
  // A word that did not become what was wanted in time. `from`: the rank that should have changed it.
  template <typename Word>
  WAYWISER_DEVICE void stop_late(const Word* word, Comparison how, Word wanted, Word seen, int from) const {
    tell(static_cast<std::uint64_t>(wanted), static_cast<std::uint64_t>(seen), how);
    stop(FaultReason::late, from, offset_of(word), sizeof(Word));
  }
  // A message that is longer than its inbox.
  WAYWISER_DEVICE void stop_too_long(std::uint64_t inbox, std::uint64_t bytes, int rank) const {
    stop(FaultReason::too_long, rank, inbox, bytes);
  }
  // A call of a team whose arrays overlap.
  template <typename T>
  WAYWISER_DEVICE void stop_overlap(const T* destination, const T* source, std::uint64_t bytes) const {
    tell(offset_of(source), 0, Comparison::eq);
    stop(FaultReason::overlap, any_rank, offset_of(destination), bytes);
  }

 protected:
  WAYWISER_DEVICE bool is_rank(int rank) const {
    return static_cast<unsigned>(rank) < static_cast<unsigned>(terms_.size);
  }
  WAYWISER_DEVICE bool has(std::uint64_t offset, std::uint64_t count, std::uint64_t element) const {
    return offset <= terms_.bytes && count <= terms_.bytes - offset && count * element <= terms_.bytes - offset;
  }
  // Before a program has made its heap nobody reads a report.
  WAYWISER_DEVICE void need_heap() const {
    if constexpr (KnowsHeap<Gpu>)
      if (terms_.notice == nullptr) Gpu::stop_without_heap();
  }
  // What goes with a report, before it.
  WAYWISER_DEVICE void tell(std::uint64_t wanted, std::uint64_t seen, Comparison how) const {
    FaultNotice* notice = terms_.notice;
    if (notice == nullptr || gpu_.acquire(&notice->failed) != 0) return;
    gpu_.store(&notice->wanted, wanted);
    gpu_.store(&notice->seen, seen);
    gpu_.store(&notice->comparison, static_cast<std::uint32_t>(how));
  }
  WAYWISER_DEVICE void stop(FaultReason reason, int rank, std::uint64_t offset, std::uint64_t bytes) const {
    need_heap();
    stop_kernel<Gpu>({gpu_, terms_}, fault_of(reason, rank), offset, bytes);
  }

 private:
  Gpu& gpu_;
  const HeapTerms& terms_;
};

}  // namespace waywiser::one_sided
