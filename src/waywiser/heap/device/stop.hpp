#pragma once

#include <type_traits>

#include "waywiser/heap/device/terms.hpp"
#include "waywiser/kernels/device_code.hpp"

namespace waywiser::one_sided {

// Code apart from its caller's, for what is rare. On a GPU a function that takes at most 12 registers of arguments and
// needs no more than 24 in all costs its caller neither memory nor registers, so arguments are few, and values.

// A block that knows its heap: there is one for all kernels of a file.
template <typename Gpu>
concept KnowsHeap = requires { Gpu::terms(); };

// A block of threads and its heap as such code gets them. A block without state is made there: a reference would keep
// that of the caller in memory.
template <typename Gpu, bool is_empty = std::is_empty_v<Gpu>, bool knows_heap = KnowsHeap<Gpu>>
class HandedHeap {
 public:
  WAYWISER_DEVICE HandedHeap(Gpu& gpu, const HeapTerms& terms) : gpu_(gpu), terms_(terms) {}
  WAYWISER_DEVICE Gpu& block() { return gpu_; }
  WAYWISER_DEVICE const HeapTerms& terms() const { return terms_; }

 private:
  Gpu& gpu_;
  const HeapTerms& terms_;
};
template <typename Gpu>
class HandedHeap<Gpu, true, false> {
 public:
  WAYWISER_DEVICE HandedHeap(const Gpu&, const HeapTerms& terms) : terms_(terms) {}
  WAYWISER_DEVICE Gpu& block() { return gpu_; }
  WAYWISER_DEVICE const HeapTerms& terms() const { return terms_; }

 private:
  [[no_unique_address]] Gpu gpu_;
  const HeapTerms& terms_;
};
template <typename Gpu>
class HandedHeap<Gpu, true, true> {
 public:
  WAYWISER_DEVICE HandedHeap(const Gpu&, const HeapTerms&) {}
  WAYWISER_DEVICE Gpu& block() { return gpu_; }
  WAYWISER_DEVICE const HeapTerms& terms() const { return Gpu::terms(); }

 private:
  Gpu gpu_;
};

WAYWISER_DEVICE constexpr std::uint64_t fault_of(FaultReason reason, int rank) {
  return static_cast<std::uint64_t>(reason) << 32 | static_cast<std::uint32_t>(rank + 1);
}

// Tells the host why a kernel stops, and stops it. Of several threads the first one counts.
template <typename Gpu>
[[noreturn]] WAYWISER_DEVICE void stop_here(Gpu& gpu, FaultNotice* notice, std::uint64_t fault, std::uint64_t offset,
                                            std::uint64_t bytes) {
  if (gpu.acquire(&notice->failed) == 0) {
    gpu.store(&notice->offset, offset);
    gpu.store(&notice->bytes, bytes);
    gpu.release(&notice->failed, fault);
  }
  while (gpu.acquire(&notice->failed) == 0) gpu.pause();  // until the host can see it
  gpu.trap();
}
template <typename Gpu>
[[noreturn]] WAYWISER_DEVICE WAYWISER_APART void stop_kernel(HandedHeap<Gpu> heap, std::uint64_t fault,
                                                             std::uint64_t offset, std::uint64_t bytes) {
  stop_here(heap.block(), heap.terms().notice, fault, offset, bytes);
}

// For an access that neither stores nor the proxy carry.
template <typename Gpu>
[[noreturn]] WAYWISER_DEVICE WAYWISER_APART void stop_access(HandedHeap<Gpu> heap, const void* symmetric,
                                                             std::uint64_t bytes, int rank) {
  const HeapTerms& terms = heap.terms();
  const std::uint64_t offset =
      reinterpret_cast<std::uintptr_t>(symmetric) - reinterpret_cast<std::uintptr_t>(terms.own);
  FaultReason reason = FaultReason::not_reached;
  if (static_cast<unsigned>(rank) >= static_cast<unsigned>(terms.size))
    reason = FaultReason::no_rank;
  else if (offset > terms.bytes || bytes > terms.bytes - offset)
    reason = FaultReason::outside;
  stop_here(heap.block(), terms.notice, fault_of(reason, rank), offset, bytes);
}

// For it: the bytes of so many elements, and the most for what no number holds.
WAYWISER_DEVICE constexpr std::uint64_t bytes_of(std::uint64_t count, std::uint64_t element) {
  return count > ~std::uint64_t{0} / element ? ~std::uint64_t{0} : count * element;
}

}  // namespace waywiser::one_sided
