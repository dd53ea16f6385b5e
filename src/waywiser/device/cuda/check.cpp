#include "waywiser/device/cuda/check.hpp"

#include <string>
#include <string_view>

#include "waywiser/base/error.hpp"
#include "waywiser/device/cuda/driver.hpp"

namespace waywiser {

namespace {

// What CUDA's own words leave open.
std::string_view remedy(cudaError_t result) {
  if (result != cudaErrorNoKernelImageForDevice) return "";
  return ": this build of Waywiser has no code for this GPU (V100 needs a build by CUDA 12)";
}

}  // namespace

void check_cuda(cudaError_t result, std::string_view what, std::source_location where) {
  if (result == cudaSuccess) return;
  cudaGetLastError();
  throw Error(ErrorKind::device,
              std::string(what) + ": " + cudaGetErrorString(result) + " (" + cudaGetErrorName(result) + ")" +
                  std::string(remedy(result)),
              where);
}

void check_driver(CUresult result, std::string_view what, std::source_location where) {
  if (result == CUDA_SUCCESS) return;
  const char* words = nullptr;
  const bool known = driver().get_error_string(result, &words) == CUDA_SUCCESS && words != nullptr;
  throw Error(ErrorKind::device,
              std::string(what) + ": " + (known ? words : "unknown error") + " (" +
                  std::to_string(static_cast<int>(result)) + ")",
              where);
}

}  // namespace waywiser
