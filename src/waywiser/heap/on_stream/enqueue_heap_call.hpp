#pragma once

#include "waywiser/heap/device/host_heap_block.hpp"
#include "waywiser/heap/heap.hpp"

namespace waywiser {

// Enqueues a call with the terms of the heap; run(block, call) on a virtual GPU. The stream of a host runs it at once.
template <typename Call, typename Run>
void enqueue_heap_call(const Heap& heap, Stream& stream, Call call, Run run) {
  call.terms = heap.local().place.is_gpu() ? heap.terms(stream) : heap.terms();
  const auto body = [call, run] {
    one_sided::HostHeapBlock gpu;
    run(gpu, call);
  };
  if (heap.local().place.is_gpu())
    return stream.launch({1, 1, [body](const ThreadContext&) { body(); }, cuda_launcher(call)});
  try {
    body();
  } catch (const Trap&) {
    heap.check();
  }
}

}  // namespace waywiser
