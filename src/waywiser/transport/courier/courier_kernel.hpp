#pragma once

#include "waywiser/device/stream.hpp"
#include "waywiser/transport/courier/mailbox.hpp"

namespace waywiser {

// The resident kernel for either kind of GPU: one block of `warps` warps; on a virtual GPU `threads` stand for them.
Kernel courier_kernel(const CourierTerms& terms, unsigned warps, unsigned threads);
// Its part for CUDA; in a build without CUDA it is empty.
std::function<void(void* cuda_stream)> cuda_courier_launcher(const CourierTerms& terms, unsigned warps);

}  // namespace waywiser
