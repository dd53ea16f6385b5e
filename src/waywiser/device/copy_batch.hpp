#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "waywiser/device/region.hpp"

namespace waywiser {

class Platform;
class Stream;

// Copies that one call hands to the copy engines of a GPU, in no order among each other: none may write what another
// one reads or writes.
class CopyBatch {
 public:
  // A copy that goes on where the one before ends becomes a part of it. Throws invalid_input like check_put().
  void add(Region to, ConstRegion from);
  std::size_t size() const noexcept { return to_.size(); }
  // Enqueued behind the stream's earlier work; a virtual GPU copies one after the other. Throws as Stream::copy, and
  // unavailable while the stream is being captured.
  void enqueue(Stream& stream) const;

 private:
  std::vector<Region> to_;
  std::vector<ConstRegion> from_;
};

// Empty: the GPUs of the platform have such a call. Otherwise the reason, for people.
std::optional<std::string> why_no_copy_batches(const Platform& platform);

// The same for CUDA: unavailable in a build without it.
std::optional<std::string> why_no_copy_batches_of_cuda();
void copy_batch_by_cuda(Stream& stream, std::span<const Region> to, std::span<const ConstRegion> from);

}  // namespace waywiser
