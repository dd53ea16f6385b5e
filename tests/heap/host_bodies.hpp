#pragma once

#include "tests/heap/body_run.hpp"
#include "waywiser/device/stream.hpp"
#include "waywiser/heap/device/host_heap_block.hpp"

namespace waywiser::one_sided {

// A body as a thread of the host or on a virtual GPU.
template <typename Body>
void run_on_host(const HeapTerms& terms, const BodyTerms& more) {
  std::byte staging[2048];
  HostStagedBlock block(staging, sizeof staging, body_threads_of_host);
  const OneSided<HostStagedBlock> ranks(block, terms);
  Body::run(BodyRanks<HostStagedBlock>{ranks, more});
}

template <typename Body>
void launch_on_host(Stream& stream, const HeapTerms& terms, const BodyTerms& more) {
  if (stream.place().is_gpu())
    return stream.launch({1, 1, [=](const ThreadContext&) { run_on_host<Body>(terms, more); }, {}});
  try {
    run_on_host<Body>(terms, more);
  } catch (const Trap&) {
  }
}

}  // namespace waywiser::one_sided
