#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <waywiser/base/error.hpp>
#include <waywiser/group/group.hpp>
#include <waywiser/halo/halo_exchange.hpp>

namespace apps {

inline waywiser::Group join() { return waywiser::Group::join(); }

inline void check(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  const bool none = code == cudaErrorNoDevice || code == cudaErrorInsufficientDriver;
  throw waywiser::Error(none ? waywiser::ErrorKind::unavailable : waywiser::ErrorKind::device,
                        std::string(what) + ": " + cudaGetErrorString(code));
}

constexpr unsigned block_threads = 256;
constexpr std::int64_t most_blocks = 1024;  // of a sum

template <typename Function>
__global__ void loop(std::int64_t count, Function f) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) f(i);
}

// A thread has `at_once` rows one after the other, so that the loads of all of them are in flight together.
template <int at_once, typename Function>
__global__ void loop(std::int64_t rows, std::int64_t columns, Function f) {
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (column >= columns) return;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.y) * blockDim.y * at_once;
  for (std::int64_t row = (static_cast<std::int64_t>(blockIdx.y) * blockDim.y + threadIdx.y) * at_once; row < rows;
       row += step) {
    if (row + at_once <= rows) {
#pragma unroll
      for (int i = 0; i < at_once; ++i) f(row + i, column);
    } else {
      for (std::int64_t rest = row; rest < rows; ++rest) f(rest, column);
    }
  }
}

struct Sum {
  template <typename T>
  APPS_CALLABLE T operator()(T a, T b) const {
    return a + b;
  }
};
struct Max {
  template <typename T>
  APPS_CALLABLE T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};

template <typename Function>
struct ByRow {
  Function f;
  std::int64_t columns;

  APPS_CALLABLE auto operator()(std::int64_t i) const { return f(i / columns, i % columns); }
};

// Each block of threads writes one part; the order of the operations depends on `count` alone.
template <typename T, typename Function, typename Combine>
__global__ void fold_parts(std::int64_t count, Function f, Combine combine, T* parts) {
  __shared__ T shared[block_threads];
  T all{};
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
    all = combine(all, f(i));
  shared[threadIdx.x] = all;
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) shared[threadIdx.x] = combine(shared[threadIdx.x], shared[threadIdx.x + half]);
  }
  if (threadIdx.x == 0) parts[blockIdx.x] = shared[0];
}

// A value that nothing writes during the loop.
template <typename T>
APPS_CALLABLE T read(const T* from) {
#if defined(__CUDA_ARCH__)
  return __ldg(from);
#else
  return *from;
#endif
}

// One stream of one GPU. Ranks share GPUs if there are more ranks than GPUs.
class Processor {
 public:
  explicit Processor(waywiser::Group& group, int /*threads*/ = 1) {
    int gpus = 0;
    check(cudaGetDeviceCount(&gpus), "no GPU");
    if (gpus == 0) check(cudaErrorNoDevice, "no GPU");
    gpu_ = group.rank() % gpus;
    check(cudaSetDevice(gpu_), "cudaSetDevice");
    check(cudaStreamCreateWithFlags(&native_, cudaStreamNonBlocking), "cudaStreamCreate");
    stream_ = waywiser::borrow_stream(group, place(), native_);
    check(cudaHostAlloc(&parts_, most_blocks * largest_part, cudaHostAllocPortable), "cudaHostAlloc");
  }
  Processor(const Processor&) = delete;
  Processor& operator=(const Processor&) = delete;
  ~Processor() {
    stream_.reset();
    cudaFreeHost(parts_);
    cudaStreamDestroy(native_);
  }

  static constexpr bool overlaps = false;
  waywiser::Place place() const noexcept { return waywiser::gpu(gpu_); }
  cudaStream_t native() const noexcept { return native_; }
  waywiser::Stream& stream() noexcept { return *stream_; }

  template <typename Function>
  void for_each(std::int64_t count, Function f) {
    if (count <= 0) return;
    loop<<<blocks_of(count, 1 << 20), block_threads, 0, native_>>>(count, f);
    check(cudaGetLastError(), "a loop");
  }
  template <typename Function>
  void for_each(std::int64_t rows, std::int64_t columns, Function f) {
    if (rows <= 0 || columns <= 0) return;
    if constexpr (requires { Function::rows_at_once; })
      if (rows * columns >= cells_of_long_threads) return launch<Function::rows_at_once>(rows, columns, f);
    launch<1>(rows, columns, f);
  }

  template <typename Function>
  auto sum(std::int64_t count, Function f) {
    return fold(count, f, Sum());
  }
  template <typename Function>
  auto sum(std::int64_t rows, std::int64_t columns, Function f) {
    return fold(rows * columns, ByRow<Function>{f, columns}, Sum());
  }
  template <typename Function>
  auto max(std::int64_t count, Function f) {
    return fold(count, f, Max());
  }

  void wait() {
    if (patience_ == 0) return check(cudaStreamSynchronize(native_), "a loop");
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(patience_);
    cudaError_t state = cudaErrorNotReady;
    while ((state = cudaStreamQuery(native_)) == cudaErrorNotReady)
      if (std::chrono::steady_clock::now() > end) {
        std::fprintf(stderr, "a kernel has not ended after %d s\n", patience_);
        std::_Exit(1);  // it never ends, and a release of memory would wait for it
      }
    check(state, "a loop");
  }
  // The process ends where a wait takes longer: for kernels whose own waits have no end.
  void end_waits_after(int seconds) { patience_ = seconds; }
  void start(waywiser::HaloExchange& halo) { halo.start(*stream_); }
  void exchange(waywiser::HaloExchange& halo) { halo.exchange(*stream_); }

 private:
  static constexpr std::size_t largest_part = 64;
  static constexpr std::int64_t cells_of_long_threads = 1 << 20;  // fewer would leave multiprocessors idle

  template <int at_once, typename Function>
  void launch(std::int64_t rows, std::int64_t columns, Function f) {
    const dim3 threads(64, 4);
    const std::int64_t high = (rows + 4 * at_once - 1) / (4 * at_once);
    const dim3 blocks(static_cast<unsigned>((columns + 63) / 64),
                      static_cast<unsigned>(std::min<std::int64_t>(high, 16384)));
    loop<at_once><<<blocks, threads, 0, native_>>>(rows, columns, f);
    check(cudaGetLastError(), "a loop");
  }
  static unsigned blocks_of(std::int64_t count, std::int64_t most) {
    return static_cast<unsigned>(std::min<std::int64_t>((count + block_threads - 1) / block_threads, most));
  }
  template <typename Function, typename Combine>
  auto fold(std::int64_t count, Function f, Combine combine) {
    using T = decltype(f(std::int64_t{}));
    static_assert(sizeof(T) <= largest_part);
    if (count <= 0) return T{};
    const unsigned blocks = blocks_of(count, most_blocks);
    fold_parts<T><<<blocks, block_threads, 0, native_>>>(count, f, combine, static_cast<T*>(parts_));
    check(cudaGetLastError(), "a sum");
    wait();
    T all{};
    for (unsigned i = 0; i < blocks; ++i) all = combine(all, static_cast<const T*>(parts_)[i]);
    return all;
  }

  int gpu_ = 0, patience_ = 0;  // patience: s; 0: the kernels' waits have an end
  cudaStream_t native_ = nullptr;
  std::shared_ptr<waywiser::Stream> stream_;
  void* parts_ = nullptr;  // of a sum, in host memory, where kernels write them
};

// A CUDA graph.
class Recording {
 public:
  explicit Recording(Processor& processor) : processor_(processor) {}
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  ~Recording() { forget(); }

  // The first call loads kernels and sets memory aside, which no capture allows; the second one records.
  template <typename Function>
  void run(Function f) {
    if (!std::exchange(ready_, true)) return f();
    if (graph_ == nullptr) record(f);
    check(cudaGraphLaunch(graph_, processor_.native()), "cudaGraphLaunch");
  }
  void forget() noexcept {
    if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
    graph_ = nullptr;
    ready_ = false;
  }

 private:
  template <typename Function>
  void record(Function f) {
    cudaGraph_t captured = nullptr;
    check(cudaStreamBeginCapture(processor_.native(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    try {
      f();
    } catch (...) {
      cudaStreamEndCapture(processor_.native(), &captured);
      if (captured != nullptr) cudaGraphDestroy(captured);
      throw;
    }
    check(cudaStreamEndCapture(processor_.native(), &captured), "cudaStreamEndCapture");
    const cudaError_t made = cudaGraphInstantiate(&graph_, captured, 0);
    cudaGraphDestroy(captured);
    check(made, "cudaGraphInstantiate");
  }

  Processor& processor_;
  cudaGraphExec_t graph_ = nullptr;
  bool ready_ = false;
};

template <typename T>
class Array {
 public:
  Array(Processor& processor, std::int64_t size) : processor_(&processor), size_(static_cast<std::size_t>(size)) {
    T* values = nullptr;
    check(cudaMalloc(&values, std::max<std::size_t>(bytes(), 1)), "cudaMalloc");
    values_.reset(values);
    check(cudaMemsetAsync(values, 0, bytes(), processor.native()), "cudaMemset");
    processor.wait();  // what reads the array next may be in another stream
  }

  T* data() noexcept { return values_.get(); }
  const T* data() const noexcept { return values_.get(); }
  std::int64_t size() const noexcept { return static_cast<std::int64_t>(size_); }
  waywiser::Elements elements() { return {std::span(data(), size_), processor_->place()}; }
  waywiser::HaloArray field(std::size_t components = 1, bool planar = false) {
    return {elements(), components, planar};
  }
  std::vector<T> values() const {
    std::vector<T> copy(size_);
    check(cudaMemcpyAsync(copy.data(), data(), bytes(), cudaMemcpyDeviceToHost, processor_->native()), "a copy");
    processor_->wait();
    return copy;
  }
  void assign(std::span<const T> values) {
    check(cudaMemcpyAsync(data(), values.data(), bytes(), cudaMemcpyHostToDevice, processor_->native()), "a copy");
    processor_->wait();
  }
  friend void swap(Array& a, Array& b) noexcept {
    std::swap(a.size_, b.size_);
    std::swap(a.values_, b.values_);
  }

 private:
  struct Free {
    void operator()(T* values) const { cudaFree(values); }
  };
  std::size_t bytes() const noexcept { return size_ * sizeof(T); }

  Processor* processor_;
  std::size_t size_;
  std::unique_ptr<T, Free> values_;
};

}  // namespace apps
