#pragma once

#include <cuda_runtime_api.h>

#include <thread>

#include "waywiser/base/error.hpp"
#include "waywiser/base/units.hpp"
#include "waywiser/device/place.hpp"

namespace waywiser {

// The result of cudaStreamQuery or cudaEventQuery. Throws device with the error of the work, naming the GPU.
bool is_done(cudaError_t answer, Place place);
Error too_late(const char* what, Place place);

// Polls `done`: without a pause for the first milliseconds, because a copy takes microseconds; then it yields the core
// between polls. False: the deadline passed.
template <typename Done>
bool poll(Done done, Deadline deadline) {
  constexpr Seconds eager = 5e-3;
  const Seconds start = now_seconds();
  for (;;) {
    for (int i = 0; i < 16; ++i)
      if (done()) return true;
    if (now_seconds() - start < eager) continue;
    if (deadline.passed()) return false;
    std::this_thread::yield();
  }
}

}  // namespace waywiser
