// Every device call and the litmus tests on two GPUs, a process for each.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "tests/heap/body_run.hpp"
#include "tests/heap/device_bodies.hpp"
#include "tests/heap/message_bodies.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/one_sided.cuh"

namespace waywiser {
namespace {

using namespace one_sided;

template <typename Body>
constexpr unsigned threads_of() {
  if constexpr (requires { Body::threads; })
    return Body::threads;
  else
    return body_threads;
}

template <typename Body>
__global__ void __launch_bounds__(threads_of<Body>())
    body_kernel(const __grid_constant__ HeapTerms terms, const __grid_constant__ BodyTerms more) {
  if constexpr (requires { Body::threads; }) {
    __shared__ alignas(128) std::byte staging[16 << 10];
    CudaStagedBlock block(staging, sizeof staging);
    const OneSided<CudaStagedBlock> ranks(block, terms);
    Body::run(BodyRanks<CudaStagedBlock>{ranks, more});
  } else {
    CudaHeapBlock block;
    const OneSided<CudaHeapBlock> ranks(block, terms);
    Body::run(BodyRanks<CudaHeapBlock>{ranks, more});
  }
}

template <typename Body>
void launch_on_gpu(Stream& stream, const HeapTerms& terms, const BodyTerms& more) {
  constexpr unsigned threads = threads_of<Body>();
  stream.launch({1, threads, {}, [&](void* native) {
                   body_kernel<Body><<<1, threads, 0, static_cast<cudaStream_t>(native)>>>(terms, more);
                   if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess)
                     throw Error(ErrorKind::device, cudaGetErrorString(error));
                 }});
}

constexpr const char* why_two = "needs two CUDA GPUs: on one, kernels that wait for each other take turns";

TEST(HeapOnCudaGpus, DeviceCallsAndLitmusTests) {
  if (cuda_devices_here() < 2) GTEST_SKIP() << why_two;
  TestRanks ranks(2);
  ranks.cuda_gpus = true;
  ranks.timeout = 30;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    each_body([&](const char* name, auto body) {
      run_body(group, gpu(group.rank()), name, 100000, 20, launch_on_gpu<decltype(body)>);
    });
    run_body(group, gpu(group.rank()), "messages", 100, 20, launch_on_gpu<MessageCalls>);
  }),
            no_problems);
}

// As on two machines: the progress threads carry every access.
TEST(HeapOnCudaGpus, DeviceCallsAndLitmusTestsByTheProxy) {
  if (cuda_devices_here() < 2) GTEST_SKIP() << why_two;
  TestRanks ranks(2);
  ranks.cuda_gpus = true;
  ranks.machines_apart = true;
  ranks.timeout = 60;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    each_body([&](const char* name, auto body) {
      run_body(group, gpu(group.rank()), name, 90, 20, launch_on_gpu<decltype(body)>);
    });
    run_body(group, gpu(group.rank()), "messages", 90, 20, launch_on_gpu<MessageCalls>);
  }),
            no_problems);
}

TEST(HeapOnCudaGpus, AWaitThatNobodyEndsIsAnErrorWithRankSignalAndValue) {
  if (cuda_devices_here() < 2) GTEST_SKIP() << why_two;
  TestRanks ranks(2);
  ranks.cuda_gpus = true;
  ranks.timeout = 5;
  const Problems problems = ranks.in_processes(
      [](Group& group) { run_body(group, gpu(group.rank()), "late", 1, 0.05, launch_on_gpu<NobodySignals>); });
  ASSERT_FALSE(problems.empty());
  EXPECT_NE(problems[0].find("rank 0, heap 'late': rank 1 did not change the word at offset 4096 within 50.0 ms: it is "
                             "3, and a kernel waits for >= 4"),
            std::string::npos)
      << problems[0];
}

}  // namespace
}  // namespace waywiser
