#pragma once

#include <optional>
#include <string>

#include "waywiser/base/error.hpp"
#include "waywiser/collective/call.hpp"
#include "waywiser/collective/gpu/gpu_algorithm.hpp"
#include "waywiser/device/stream.hpp"

namespace waywiser {

// One of the means by which a group carries out its collectives on streams. StreamOperations has a table of them.
class StreamEngine {
 public:
  virtual ~StreamEngine() = default;

  // Why it cannot carry out the call in this way; empty: it can. The same at all ranks. Sets nothing up.
  virtual std::string why_not(const GpuAlgorithm& way, const CollectiveCall& call) const = 0;
  // Its way for a call that no plan names one for.
  virtual GpuAlgorithm default_way(const CollectiveCall& call) const = 0;
  // Collective, before enqueue(): sets up what this call needs and earlier ones have not. Returns false if that has
  // shown why_not(). In a stream that is being captured it sets nothing up, and throws unavailable if it would have to.
  virtual bool prepare(const GpuAlgorithm& way, const CollectiveCall& call, bool capturing);
  virtual void enqueue(const GpuAlgorithm& way, const CollectiveCall& call, ConstRegion input, Region output,
                       Stream& stream) = 0;
  // The error of a failed wait on the GPU, if any. `group`: why the group has failed, or empty. For any thread.
  virtual std::optional<Error> failure(const std::string& group) const;
  // Ends all waits on the GPU. For any thread.
  virtual void stop() noexcept {}
};

inline bool StreamEngine::prepare(const GpuAlgorithm&, const CollectiveCall&, bool) { return true; }
inline std::optional<Error> StreamEngine::failure(const std::string&) const { return {}; }

}  // namespace waywiser
