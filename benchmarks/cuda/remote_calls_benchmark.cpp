// How long calls of kernels take: on a GPU of this process, or on one of `waywiser serve` by a client that does not use
// CUDA. A kernel adds to 64 numbers; their sums are checked. One line of JSON on standard output.
//   remote_calls_benchmark
//   remote_calls_benchmark HOST:PORT KEY      # the server compiles the kernel: it needs NVRTC
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <span>
#include <vector>

#include "benchmarks/cuda/local_kernel.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/base/units.hpp"
#include "waywiser/device/cuda/check.hpp"
#include "waywiser/offload/array_head.hpp"
#include "waywiser/offload/connect.hpp"
#include "waywiser/offload/launch.hpp"

namespace waywiser {
namespace {

constexpr int numbers = 64;
constexpr int rounds = 5, launches = 20000;           // of asynchronous calls
constexpr int synchronous = 2000;                     // calls that wait
constexpr int steps = 500, ahead = 328, waiting = 4;  // of a program: asynchronous and synchronous calls of a step
constexpr const char* source =
    "extern \"C\" __global__ void axpy(float* y, const float* x, float a, int n) {"
    "  const int i = blockIdx.x * blockDim.x + threadIdx.x;"
    "  if (i < n) y[i] += a * x[i];"
    "}";

class LocalGpu {
 public:
  LocalGpu() {
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream");
    const std::vector<float> ones(numbers, 1), zeros(numbers, 0);
    for (float** each : {&x_, &y_})
      check_cuda(cudaMalloc(reinterpret_cast<void**>(each), numbers * sizeof(float)), "memory");
    check_cuda(cudaMemcpy(x_, ones.data(), numbers * sizeof(float), cudaMemcpyHostToDevice), "a copy");
    check_cuda(cudaMemcpy(y_, zeros.data(), numbers * sizeof(float), cudaMemcpyHostToDevice), "a copy");
  }
  LocalGpu(const LocalGpu&) = delete;
  LocalGpu& operator=(const LocalGpu&) = delete;
  ~LocalGpu() {
    cudaFree(x_);
    cudaFree(y_);
    cudaStreamDestroy(stream_);
  }

  void launch() { launch_axpy(stream_, y_, x_, 1, numbers); }
  void synchronize() { check_cuda(cudaStreamSynchronize(stream_), "a stream"); }
  std::vector<float> sums() {
    std::vector<float> found(numbers);
    check_cuda(cudaMemcpy(found.data(), y_, numbers * sizeof(float), cudaMemcpyDeviceToHost), "a copy");
    return found;
  }

 private:
  cudaStream_t stream_ = nullptr;
  float *x_ = nullptr, *y_ = nullptr;
};

class ServersGpu {
 public:
  ServersGpu(const char* address, const char* key)
      : gpu_(connect_remote_gpu({.address = address, .key = key})), code_(gpu_.load_kernels(source)) {
    const std::vector<float> ones(numbers, 1), zeros(numbers, 0);
    const std::uint64_t x = gpu_.array(std::span(ones));
    y_ = gpu_.array(std::span(zeros));
    arguments_ = {KernelArgument::of_array(y_), KernelArgument::of_array(x), KernelArgument::of(1.0F),
                  KernelArgument::of(std::int32_t{numbers})};
  }

  void launch() { gpu_.launch(code_, "axpy", {{1, 1, 1}, {numbers, 1, 1}, 0}, arguments_); }
  void synchronize() { gpu_.synchronize(); }
  std::vector<float> sums() {
    std::vector<float> found(numbers);
    gpu_.get(y_, std::span(found));
    return found;
  }

 private:
  RemoteGpu gpu_;
  std::uint64_t code_, y_ = 0;
  std::array<KernelArgument, 4> arguments_;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

template <typename Gpu>
void run(Gpu& gpu) {
  long calls = 0;
  const auto launch = [&] {
    gpu.launch();
    ++calls;
  };
  const auto seconds_of = [](const auto& work) {
    const Seconds begin = now_seconds();
    work();
    return now_seconds() - begin;
  };
  for (int i = 0; i < 200; ++i) launch();
  gpu.synchronize();
  std::vector<double> of_launches, of_calls, of_steps;
  for (int round = 0; round < rounds; ++round)
    of_launches.push_back(seconds_of([&] {
                            for (int i = 0; i < launches; ++i) launch();
                            gpu.synchronize();
                          }) /
                          launches);
  for (int i = 0; i < synchronous; ++i)
    of_calls.push_back(seconds_of([&] {
      launch();
      gpu.synchronize();
    }));
  for (int step = 0; step < steps; ++step)
    of_steps.push_back(seconds_of([&] {
      for (int i = 0; i < ahead; ++i) launch();
      for (int i = 0; i < waiting; ++i) {
        launch();
        gpu.synchronize();
      }
    }));
  double all_steps = 0;
  for (const double each : of_steps) all_steps += each;
  for (const float sum : gpu.sums())
    if (sum != static_cast<float>(calls)) throw Error(ErrorKind::corrupt, "a sum is wrong");
  std::printf("{\"launch_us\": %.4g, \"synchronous_us\": %.4g, \"steps_seconds\": %.6g, \"calls\": %ld}\n",
              1e6 * median(of_launches), 1e6 * median(of_calls), all_steps, calls);
}

int start(int count, char** words) {
  if (count == 1) {
    int gpus = 0;
    if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) {
      std::fprintf(stderr, "remote_calls_benchmark: skipped: no CUDA GPU\n");
      std::printf("{\"skipped\": \"no CUDA GPU\"}\n");
      return 0;
    }
    LocalGpu gpu;
    run(gpu);
  } else if (count == 3) {
    ServersGpu gpu(words[1], words[2]);
    run(gpu);
  } else {
    std::fprintf(stderr, "usage: remote_calls_benchmark [HOST:PORT KEY]\n");
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace waywiser

int main(int count, char** words) {
  try {
    return waywiser::start(count, words);
  } catch (const waywiser::Error& error) {
    std::fprintf(stderr, "remote_calls_benchmark: %s\n", error.what());
    return 1;
  }
}
