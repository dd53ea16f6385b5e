#pragma once

#include <array>
#include <memory>

#include "waywiser/device/descriptor.hpp"
#include "waywiser/device/region.hpp"

namespace waywiser {

enum class Allocation {
  pageable,    // host: ordinary memory
  pinned,      // host: page-locked and mapped for the GPUs; ordinary memory without a GPU
  shared,      // host: a memfd mapping that another process can open
  gpu,         // GPU: plain allocation, exportable by cudaIpc (or the virtual GPU's descriptor)
  gpu_mapped,  // GPU: virtual memory management, exportable as a file descriptor
};

enum class HandleKind { descriptor, cuda_ipc, gpu_descriptor };

// What another process of this machine needs to map a memory. The descriptor travels by SCM_RIGHTS.
struct MemoryHandle {
  HandleKind kind = HandleKind::descriptor;
  Place place;
  Bytes bytes = 0;
  Bytes offset = 0;  // of the memory within the opened range
  std::array<std::byte, 64> opaque{};
  Descriptor descriptor;
};

// Base class of the back ends' owners; the destructor frees or unmaps.
struct MemoryOwner {
  Region region;
  Allocation allocation = Allocation::pageable;

  virtual ~MemoryOwner() = default;
};

// Owns memory in one place.
class Memory {
 public:
  Memory() = default;
  explicit Memory(std::unique_ptr<MemoryOwner> block) : block_(std::move(block)) {}

  Region region() const { return block_ ? block_->region : Region{}; }
  Allocation allocation() const { return block_ ? block_->allocation : Allocation::pageable; }
  explicit operator bool() const noexcept { return block_ != nullptr; }
  const MemoryOwner* block() const noexcept { return block_.get(); }

 private:
  std::unique_ptr<MemoryOwner> block_;
};

}  // namespace waywiser
