#pragma once

#include <memory>
#include <string>

#include "tests/comm/test_ranks.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/heap/device/host_heap_block.hpp"
#include "waywiser/heap/device/one_sided.hpp"
#include "waywiser/heap/device/team.hpp"
#include "waywiser/heap/heap.hpp"

namespace waywiser {

using HostOneSided = one_sided::OneSided<one_sided::HostHeapBlock>;

// Runs body(heap) as a kernel of this rank: on its virtual GPU, or as a thread of the host. Throws what the heap says.
template <typename Body>
void run_kernel(const Group& group, const Heap& heap, const Body& body, unsigned threads = 64) {
  const auto kernel = [=](const one_sided::HeapTerms& terms) {
    one_sided::HostHeapBlock gpu(0, 1, threads);
    const HostOneSided ranks(gpu, terms);
    body(ranks);
  };
  if (!heap.local().place.is_gpu()) {
    try {
      kernel(heap.terms());
    } catch (const Trap&) {
    }
    return heap.check();
  }
  const auto stream = group.platform()->open_stream(heap.local().place);
  stream->launch({1, 1, [kernel, terms = heap.terms(*stream)](const ThreadContext&) { kernel(terms); }, {}});
  heap.synchronize(*stream);
}

// Runs each rank with the place of its heap: once in host memory, once on virtual GPUs. `of_machine`: the ranks of each
// machine; 0: one machine has all.
inline std::string problems_of(int size, const std::function<void(Group&, Place)>& body, Seconds timeout = 20,
                               int of_machine = 0) {
  std::string said;
  for (const bool on_gpus : {false, true}) {
    TestRanks ranks(size);
    ranks.timeout = timeout;
    ranks.virtual_gpus = on_gpus ? size : 0;
    ranks.machines_apart = of_machine != 0;
    if (of_machine != 0) ranks.ranks_of_machine = of_machine;
    const auto problems = ranks.in_processes([&](Group& group) {
      body(group, on_gpus ? gpu(group.rank()) : host(0));
      group.barrier();
    });
    for (const std::string& each : problems) said += (on_gpus ? "GPUs: " : "hosts: ") + each + "\n";
  }
  return said;
}

}  // namespace waywiser
