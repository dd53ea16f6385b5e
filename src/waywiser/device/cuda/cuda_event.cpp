#include "waywiser/device/cuda/cuda_event.hpp"

#include "waywiser/base/error.hpp"
#include "waywiser/device/cuda/check.hpp"
#include "waywiser/device/cuda/cuda_device.hpp"
#include "waywiser/device/cuda/poll.hpp"
#include "waywiser/device/foreign_event.hpp"

namespace waywiser {

CudaEvent::CudaEvent(Place place, int ordinal, unsigned flags) : place_(place) {
  const CurrentDevice current(ordinal);
  check_cuda(cudaEventCreateWithFlags(&event_, flags), "cudaEventCreate");
}

CudaEvent::~CudaEvent() { cudaEventDestroy(event_); }

bool CudaEvent::done() const { return is_done(cudaEventQuery(event_), place_); }

void CudaEvent::synchronize(Deadline deadline) const {
  if (!poll([this] { return done(); }, deadline)) throw too_late("an event", place_);
}

Seconds CudaEvent::since(const Event& earlier) const {
  const auto* other = dynamic_cast<const CudaEvent*>(&earlier);
  if (other == nullptr) throw Error(ErrorKind::invalid_input, "event times are comparable on one device only");
  float milliseconds = 0;
  check_cuda(cudaEventElapsedTime(&milliseconds, other->event_, event_), "cudaEventElapsedTime");
  return static_cast<Seconds>(milliseconds) * 1e-3;
}

void await_foreign_event(const void* event, Deadline deadline) {
  const auto done = [&] {
    const cudaError_t result = cudaEventQuery(*static_cast<const cudaEvent_t*>(event));
    if (result != cudaErrorNotReady) check_cuda(result, "an event of another library");
    return result == cudaSuccess;
  };
  if (!poll(done, deadline)) throw Error(ErrorKind::timeout, "an event of another library has not come in time");
}

}  // namespace waywiser
