#include "waywiser/device/cuda/cuda_stream.hpp"

#include <exception>
#include <mutex>
#include <type_traits>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/device/cuda/check.hpp"
#include "waywiser/device/cuda/cuda_device.hpp"
#include "waywiser/device/cuda/cuda_event.hpp"
#include "waywiser/device/cuda/driver.hpp"
#include "waywiser/device/cuda/poll.hpp"

namespace waywiser {
namespace {

constexpr Seconds longest_wait = 60;

CUdeviceptr flag_address(ConstRegion flag) {
  const auto address = reinterpret_cast<std::uintptr_t>(flag.data);
  if (flag.bytes != sizeof(std::uint64_t) || address % sizeof(std::uint64_t) != 0)
    throw Error(ErrorKind::invalid_input, "a flag must be 8 bytes at an 8-byte aligned address");
  return static_cast<CUdeviceptr>(address);
}

CudaEvent& cuda_event(Event& event) {
  auto* own = dynamic_cast<CudaEvent*>(&event);
  if (own == nullptr) throw Error(ErrorKind::invalid_input, "this event is not one of a CUDA device");
  return *own;
}

class CudaGraph : public StreamGraph {
 public:
  CudaGraph(int ordinal, cudaGraph_t graph) : ordinal_(ordinal) {
    check_cuda(cudaGraphInstantiate(&runnable_, graph, 0), "cudaGraphInstantiate");
  }
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;
  ~CudaGraph() override { cudaGraphExecDestroy(runnable_); }

  void launch(Stream& stream) override {
    const CurrentDevice current(ordinal_);
    check_cuda(cudaGraphLaunch(runnable_, static_cast<cudaStream_t>(stream.native())), "cudaGraphLaunch");
  }

 private:
  int ordinal_;
  cudaGraphExec_t runnable_ = nullptr;
};

using OwnedGraph = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, cudaError_t (*)(cudaGraph_t)>;

}  // namespace

// The first exception that a call() threw; shared with calls that are still to run.
struct CudaStream::CallErrors {
  std::mutex mutex;
  std::exception_ptr first;
};

struct CudaStream::Call {
  std::function<void()> function;
  std::shared_ptr<CallErrors> errors;
};

CudaStream::CudaStream(Place place, int ordinal)
    : place_(place), ordinal_(ordinal), call_errors_(std::make_shared<CallErrors>()) {
  const CurrentDevice current(ordinal_);
  check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
}

CudaStream::CudaStream(Place place, int ordinal, cudaStream_t borrowed)
    : place_(place),
      ordinal_(ordinal),
      stream_(borrowed == nullptr ? cudaStreamLegacy : borrowed),
      own_(false),
      call_errors_(std::make_shared<CallErrors>()) {}

CudaStream::~CudaStream() {
  if (own_) cudaStreamDestroy(stream_);
}

void CudaStream::copy(Region destination, ConstRegion source) {
  check_put(destination, source);
  if (destination.bytes == 0) return;
  const CurrentDevice current(ordinal_);
  check_cuda(cudaMemcpyAsync(destination.data, source.data, destination.bytes, cudaMemcpyDefault, stream_),
             "copy on a stream");
}

void CudaStream::copy(const cudaMemcpy3DParms& rows) {
  const CurrentDevice current(ordinal_);
  check_cuda(cudaMemcpy3DAsync(&rows, stream_), "strided copy on a stream");
}

void CudaStream::launch(const Kernel& kernel) {
  if (!kernel.cuda) throw Error(ErrorKind::unavailable, "this kernel has no CUDA version");
  const CurrentDevice current(ordinal_);
  kernel.cuda(stream_);
}

void CudaStream::write_value(Region flag, std::uint64_t value) {
  const CUdeviceptr address = flag_address(flag);
  const CurrentDevice current(ordinal_);
  check_driver(driver().stream_write_value(stream_, address, value, CU_STREAM_WRITE_VALUE_DEFAULT), "write of a flag");
}

void CudaStream::wait_value(ConstRegion flag, std::uint64_t at_least) {
  const CUdeviceptr address = flag_address(flag);
  const CurrentDevice current(ordinal_);
  check_driver(driver().stream_wait_value(stream_, address, at_least, CU_STREAM_WAIT_VALUE_GEQ), "wait for a flag");
}

void CudaStream::run_call(void* call) {
  const std::unique_ptr<Call> mine(static_cast<Call*>(call));
  try {
    mine->function();
  } catch (...) {
    const std::scoped_lock lock(mine->errors->mutex);
    if (!mine->errors->first) mine->errors->first = std::current_exception();
  }
}

void CudaStream::call(std::function<void()> function) {
  auto call = std::make_unique<Call>(Call{std::move(function), call_errors_});
  const CurrentDevice current(ordinal_);
  check_cuda(cudaLaunchHostFunc(stream_, &CudaStream::run_call, call.get()), "host call on a stream");
  (void)call.release();  // run_call owns it now
}

void CudaStream::record(Event& event) {
  const CurrentDevice current(ordinal_);
  check_cuda(cudaEventRecord(cuda_event(event).native(), stream_), "cudaEventRecord");
}

void CudaStream::wait(const Event& event) {
  const CurrentDevice current(ordinal_);
  if (const auto* own = dynamic_cast<const CudaEvent*>(&event))
    check_cuda(cudaStreamWaitEvent(stream_, own->native(), 0), "cudaStreamWaitEvent");
  else
    event.synchronize(Deadline::in(longest_wait));
}

bool CudaStream::capturing() const {
  const CurrentDevice current(ordinal_);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check_cuda(cudaStreamIsCapturing(stream_, &status), "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

std::unique_ptr<StreamGraph> CudaStream::capture(const std::function<void()>& enqueue) {
  const CurrentDevice current(ordinal_);
  check_cuda(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  const auto end = [this] {
    cudaGraph_t graph = nullptr;
    const cudaError_t result = cudaStreamEndCapture(stream_, &graph);
    return std::pair(OwnedGraph(graph, cudaGraphDestroy), result);
  };
  try {
    enqueue();
  } catch (...) {
    end();
    throw;
  }
  const auto [graph, result] = end();
  check_cuda(result, "cudaStreamEndCapture");
  return std::make_unique<CudaGraph>(ordinal_, graph.get());
}

void CudaStream::before_pageable_read() { synchronize(Deadline::in(longest_wait)); }

bool CudaStream::done() {
  const CurrentDevice current(ordinal_);
  if (!is_done(cudaStreamQuery(stream_), place_)) return false;
  const std::scoped_lock lock(call_errors_->mutex);
  if (call_errors_->first) std::rethrow_exception(std::exchange(call_errors_->first, nullptr));
  return true;
}

void CudaStream::synchronize(Deadline deadline) {
  if (!poll([this] { return done(); }, deadline)) throw too_late("a stream", place_);
}

}  // namespace waywiser
