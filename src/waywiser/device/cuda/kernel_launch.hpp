#pragma once

#include <cuda_runtime_api.h>

#include <type_traits>

#include "waywiser/device/stream.hpp"

namespace waywiser {

struct KernelLaunch {
  const void* kernel = nullptr;
  unsigned blocks = 1, threads = 1;
  // The kernel may begin before the one before it in the stream has ended: it waits itself where it must (programmatic
  // dependent launch).
  bool overlaps = false;
};

// One kernel at a time as a graph of one node, which is set anew before each launch: less work for the host than a
// launch (docs/performance.md). What is in flight keeps the arguments that it was launched with. All on one GPU, in
// streams in which they come one after another.
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

// On a cudaStream_t of the current device: through `cache`, a LaunchGraph or nullptr, unless the stream is being
// captured. Throws device with `what`.
void launch_kernel(LaunchCache* cache, const KernelLaunch& launch, void** arguments, void* stream, const char* what);

template <typename... Parameters>
void launch_kernel(LaunchCache* cache, void (*kernel)(Parameters...), unsigned blocks, unsigned threads, bool overlaps,
                   void* stream, const char* what, const std::type_identity_t<Parameters>&... arguments) {
  void* list[] = {const_cast<void*>(static_cast<const void*>(&arguments))...};
  launch_kernel(cache, {reinterpret_cast<const void*>(kernel), blocks, threads, overlaps}, list, stream, what);
}

}  // namespace waywiser
