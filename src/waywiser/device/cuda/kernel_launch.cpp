#include "waywiser/device/cuda/kernel_launch.hpp"

#include "waywiser/device/cuda/check.hpp"

namespace waywiser {
namespace {

bool captures(cudaStream_t stream, const char* what) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check_cuda(cudaStreamIsCapturing(stream, &status), what);
  return status != cudaStreamCaptureStatusNone;
}

cudaError_t launch_alone(const KernelLaunch& launch, void** arguments, cudaStream_t stream) {
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(launch.blocks);
  config.blockDim = dim3(launch.threads);
  config.stream = stream;
  config.attrs = &overlap;
  config.numAttrs = launch.overlaps ? 1 : 0;
  return cudaLaunchKernelExC(&config, launch.kernel, arguments);
}

}  // namespace

LaunchGraph::~LaunchGraph() {
  if (runnable_ != nullptr) cudaGraphExecDestroy(runnable_);
  if (graph_ != nullptr) cudaGraphDestroy(graph_);
}

cudaError_t LaunchGraph::launch(const KernelLaunch& launch, void** arguments, cudaStream_t stream) {
  cudaKernelNodeParams node{};
  node.func = const_cast<void*>(launch.kernel);
  node.gridDim = dim3(launch.blocks);
  node.blockDim = dim3(launch.threads);
  node.kernelParams = arguments;
  const cudaError_t result =
      runnable_ == nullptr ? build(node) : cudaGraphExecKernelNodeSetParams(runnable_, node_, &node);
  return result == cudaSuccess ? cudaGraphLaunch(runnable_, stream) : result;
}

cudaError_t LaunchGraph::build(const cudaKernelNodeParams& node) {
  cudaError_t result = graph_ == nullptr ? cudaGraphCreate(&graph_, 0) : cudaSuccess;
  if (result == cudaSuccess && node_ == nullptr) result = cudaGraphAddKernelNode(&node_, graph_, nullptr, 0, &node);
  return result == cudaSuccess ? cudaGraphInstantiate(&runnable_, graph_, 0) : result;
}

void launch_kernel(LaunchCache* cache, const KernelLaunch& launch, void** arguments, void* stream, const char* what) {
  const auto native = static_cast<cudaStream_t>(stream);
  const bool in_graph = cache != nullptr && !captures(native, what);
  check_cuda(in_graph ? static_cast<LaunchGraph*>(cache)->launch(launch, arguments, native)
                      : launch_alone(launch, arguments, native),
             what);
}

}  // namespace waywiser
