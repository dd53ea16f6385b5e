#include "waywiser/base/error.hpp"
#include "waywiser/kernels/cuda_launchers.hpp"

namespace waywiser {

CudaLauncher cuda_copy_launcher(LaunchCache*, std::byte*, const std::byte*, Bytes, unsigned, unsigned) { return {}; }
CudaLauncher cuda_fill_launcher(std::byte*, Bytes, std::uint64_t, unsigned, unsigned) { return {}; }
CudaLauncher cuda_clear_launcher(std::byte*, Bytes) { return {}; }
CudaLauncher cuda_count_launcher(const std::byte*, Bytes, std::uint64_t, std::uint64_t*, unsigned, unsigned) {
  return {};
}

CudaLauncher cuda_elementwise_launcher(const Elementwise&, const ElementwiseArrays&, unsigned, unsigned) { return {}; }

CudaLauncher cuda_trap_launcher() { return {}; }

// Only a CUDA stream has a native handle, and there is none in this build.
std::uint64_t* cuda_new_counter(void*) { throw Error(ErrorKind::unavailable, "built without CUDA"); }
std::uint64_t cuda_read_counter(void*, std::uint64_t*) { throw Error(ErrorKind::unavailable, "built without CUDA"); }

}  // namespace waywiser
