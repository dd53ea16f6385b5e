#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <source_location>
#include <string_view>

namespace waywiser {

// Unless `result` is success, throws device with `what` and CUDA's message. The error is cleared first, so that the
// next launch check does not find it again.
void check_cuda(cudaError_t result, std::string_view what,
                std::source_location where = std::source_location::current());
void check_driver(CUresult result, std::string_view what, std::source_location where = std::source_location::current());

}  // namespace waywiser
