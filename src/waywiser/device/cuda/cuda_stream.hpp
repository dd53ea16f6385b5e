#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <span>

#include "waywiser/device/stream.hpp"

namespace waywiser {

// A non-blocking cudaStream_t. Work can be captured into a graph between calls, except call().
class CudaStream : public Stream {
 public:
  CudaStream(Place place, int ordinal);
  // A stream of another owner, which destroys it.
  CudaStream(Place place, int ordinal, cudaStream_t borrowed);
  ~CudaStream() override;  // enqueued work continues; its memory must stay

  Place place() const override { return place_; }
  void copy(Region destination, ConstRegion source) override;
  void copy(const cudaMemcpy3DParms& rows);
  void before_pageable_read() override;
  void launch(const Kernel& kernel) override;
  void write_value(Region flag, std::uint64_t value) override;
  void wait_value(ConstRegion flag, std::uint64_t at_least) override;
  void call(std::function<void()> function) override;
  void record(Event& event) override;
  void wait(const Event& event) override;
  bool done() override;
  void synchronize(Deadline deadline) override;
  void* native() const override { return stream_; }
  bool capturing() const override;
  std::unique_ptr<StreamGraph> capture(const std::function<void()>& enqueue) override;

 private:
  struct CallErrors;
  struct Call;
  static void run_call(void* call);

  Place place_;
  int ordinal_;
  cudaStream_t stream_ = nullptr;
  bool own_ = true;
  std::shared_ptr<CallErrors> call_errors_;
};

}  // namespace waywiser
