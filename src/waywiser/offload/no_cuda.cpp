#include "waywiser/base/error.hpp"
#include "waywiser/offload/client_kernels.hpp"

namespace waywiser {

std::string facts_of_cuda_gpu(int) { throw Error(ErrorKind::unavailable, "built without CUDA"); }

std::unique_ptr<KernelMaker> open_cuda_kernel_maker(int) { throw Error(ErrorKind::unavailable, "built without CUDA"); }

}  // namespace waywiser
