#pragma once

#include "waywiser/device/stream.hpp"
#include "waywiser/transport/courier/mailbox.hpp"

namespace waywiser {

// How many multiprocessors of the GPU work, and how many warps on each poll for messages.
struct CourierShape {
  unsigned lanes = 1;    // 1 to most_lanes
  unsigned pollers = 1;  // 1 to most_pollers
};

// The resident kernel for either kind of GPU: a block of `pollers` warps for each lane.
Kernel courier_kernel(const CourierTerms& terms, CourierShape shape);
// Its part for CUDA; in a build without CUDA it is empty.
std::function<void(void* cuda_stream)> cuda_courier_launcher(const CourierTerms& terms, CourierShape shape);

}  // namespace waywiser
