#include "waywiser/device/cuda/poll.hpp"

#include "waywiser/device/cuda/check.hpp"

namespace waywiser {

bool is_done(cudaError_t answer, Place place) {
  if (answer == cudaSuccess) return true;
  if (answer == cudaErrorNotReady) {
    cudaGetLastError();
    return false;
  }
  check_cuda(answer, "work on " + text(place));
  return true;
}

Error too_late(const char* what, Place place) {
  return Error(ErrorKind::timeout, "the deadline passed while waiting for " + std::string(what) + " of " + text(place));
}

}  // namespace waywiser
