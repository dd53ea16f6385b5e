#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "waywiser/device/stream.hpp"

namespace waywiser {
class KeptFailure;
}

namespace waywiser::on_stream {

// Follows a call in its stream where the context is kept: later work of the stream must not take what a failed call has
// left for a result. If an operation of the job has failed on this GPU by then, all bytes of the outputs become 0xff,
// which is NaN in every floating-point type, and -1 or the greatest number in integers. `asks_host`: the call's kernels
// do not themselves tell that they have given up (NCCL's).
void guard(const KeptFailure& kept, std::span<const Region> outputs, bool asks_host, Stream& stream);

// Addresses as the GPU reaches them. `told` may be nullptr.
struct GuardArguments {
  std::uint32_t* failed = nullptr;
  const std::uint32_t* told = nullptr;
  std::byte* data = nullptr;
  std::uint64_t bytes = 0;
};

// For a cudaStream_t; empty in a build without CUDA.
std::function<void(void*)> cuda_guard_launcher(const GuardArguments& guard);

}  // namespace waywiser::on_stream
