#pragma once

#include <cuda_runtime_api.h>

#include "waywiser/device/stream.hpp"

namespace waywiser {

class CudaEvent : public Event {
 public:
  CudaEvent(Place place, int ordinal, unsigned flags);  // of cudaEventCreateWithFlags
  ~CudaEvent() override;

  bool done() const override;
  void synchronize(Deadline deadline) const override;
  Seconds since(const Event& earlier) const override;
  cudaEvent_t native() const noexcept { return event_; }

 private:
  Place place_;
  cudaEvent_t event_ = nullptr;
};

}  // namespace waywiser
