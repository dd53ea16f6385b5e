#pragma once

#include "waywiser/heap/device/host_heap_block.hpp"
#include "waywiser/heap/heap.hpp"

namespace waywiser {

// The block of a call that the program's own thread carries out: its waits end as those of all calls.
class WaitingBlock : public one_sided::HostHeapBlock {
 public:
  explicit WaitingBlock(const Heap& heap) : heap_(heap) {}
  void pause() {  // NOLINT(bugprone-derived-method-shadowing-base-method): run() takes any block, as a template
    HostHeapBlock::pause();
    if (++pauses_ % between_checks == 0) heap_.check();
  }

 private:
  static constexpr unsigned between_checks = 64;
  const Heap& heap_;
  unsigned pauses_ = 0;
};

// Enqueues a call with the terms of the heap; run(block, call) on a virtual GPU. The stream of a host runs it at once.
template <typename Call, typename Run>
void enqueue_heap_call(const Heap& heap, Stream& stream, Call call, Run run) {
  if (heap.local().place.is_gpu()) {
    call.terms = heap.terms(stream);
    const auto body = [call, run] {
      one_sided::HostHeapBlock gpu;
      run(gpu, call);
    };
    return stream.launch({1, 1, [body](const ThreadContext&) { body(); }, cuda_launcher(call)});
  }
  heap.check();
  call.terms = heap.terms();
  WaitingBlock block(heap);
  try {
    run(block, call);
  } catch (const Trap&) {
    heap.check();
  }
}

}  // namespace waywiser
