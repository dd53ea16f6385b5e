#pragma once

#include <cuda_runtime_api.h>

#include <type_traits>

#include "waywiser/device/stream.hpp"

namespace waywiser {

struct KernelLaunch {
  const void* kernel = nullptr;
  unsigned blocks = 1, threads = 1;
  // The kernel may begin before the preceding kernel of the stream has ended, and itself waits where necessary
  // (programmatic dependent launch).
  bool overlaps = false;
};

// Launches one kernel at a time as a graph of one node, which is updated before each launch: this costs the host less
// than a launch (docs/lab/gpu-groups.md). A kernel in flight keeps its arguments. All kernels must be on one GPU, in
// streams in which they run one after another.
class LaunchGraph : public LaunchCache {
 public:
  LaunchGraph() = default;
  LaunchGraph(const LaunchGraph&) = delete;
  LaunchGraph& operator=(const LaunchGraph&) = delete;
  ~LaunchGraph() override;

  cudaError_t launch(const KernelLaunch& launch, void** arguments, cudaStream_t stream);

 private:
  cudaError_t build(const cudaKernelNodeParams& node);

  cudaGraph_t graph_ = nullptr;
  cudaGraphNode_t node_ = nullptr;
  cudaGraphExec_t runnable_ = nullptr;
};

// On a cudaStream_t of the current device: through `cache` (a LaunchGraph, or nullptr) unless the stream is being
// captured. Throws device with `what`.
void launch_kernel(LaunchCache* cache, const KernelLaunch& launch, void** arguments, void* stream, const char* what);

template <typename... Parameters>
void launch_kernel(LaunchCache* cache, void (*kernel)(Parameters...), unsigned blocks, unsigned threads, bool overlaps,
                   void* stream, const char* what, const std::type_identity_t<Parameters>&... arguments) {
  void* list[] = {const_cast<void*>(static_cast<const void*>(&arguments))...};
  launch_kernel(cache, {reinterpret_cast<const void*>(kernel), blocks, threads, overlaps}, list, stream, what);
}

}  // namespace waywiser
