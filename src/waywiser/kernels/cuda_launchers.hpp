#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "waywiser/base/units.hpp"

namespace waywiser {

class LaunchCache;
struct Elementwise;
struct ElementwiseArrays;

// The values of Kernel::cuda: enqueue on a cudaStream_t of the current device. Empty in a build without CUDA.
using CudaLauncher = std::function<void(void* cuda_stream)>;

CudaLauncher cuda_copy_launcher(LaunchCache* cache, std::byte* destination, const std::byte* source, Bytes bytes,
                                unsigned blocks, unsigned threads);
CudaLauncher cuda_fill_launcher(std::byte* data, Bytes bytes, std::uint64_t seed, unsigned blocks, unsigned threads);
CudaLauncher cuda_clear_launcher(std::byte* data, Bytes bytes);
// Adds the number of differing bytes to *`count`, which the GPU must reach.
CudaLauncher cuda_count_launcher(const std::byte* data, Bytes bytes, std::uint64_t seed, std::uint64_t* count,
                                 unsigned blocks, unsigned threads);

CudaLauncher cuda_elementwise_launcher(const Elementwise& operation, const ElementwiseArrays& arrays, unsigned blocks,
                                       unsigned threads);

CudaLauncher cuda_trap_launcher();

// An 8-byte counter in the memory of the current stream's GPU. Both throw device; the first function sets it to zero in
// stream order, the second requires a synchronised stream.
std::uint64_t* cuda_new_counter(void* cuda_stream);
std::uint64_t cuda_read_counter(void* cuda_stream, std::uint64_t* counter);

}  // namespace waywiser
