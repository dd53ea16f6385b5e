#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

#include "waywiser/device/memory.hpp"

namespace waywiser {

// Each subclass owns one kind of address range; a Memory and the openers of its handle share it.
class CudaRange {
 public:
  virtual ~CudaRange() = default;
  std::byte* data() const noexcept { return data_; }

 protected:
  std::byte* data_ = nullptr;
};

struct CudaMemoryOwner : MemoryOwner {
  std::shared_ptr<CudaRange> range;
};

// cudaMalloc.
class PlainRange : public CudaRange {
 public:
  PlainRange(int ordinal, Bytes bytes);
  ~PlainRange() override;

 private:
  int ordinal_;
};

// Virtual memory management: exportable as a file descriptor. `reachers`: the devices that may read and write it.
class MappedRange : public CudaRange {
 public:
  MappedRange(int ordinal, Bytes bytes, const std::vector<int>& reachers);
  MappedRange(const Descriptor& exported, int ordinal, Bytes bytes, const std::vector<int>& reachers);
  ~MappedRange() override;
  Descriptor export_descriptor() const;

 private:
  void map(int ordinal, const std::vector<int>& reachers);
  void release() noexcept;

  Bytes length_ = 0;
  CUmemGenericAllocationHandle handle_ = 0;
  bool mapped_ = false;
};

// cudaIpcOpenMemHandle: the plain allocation of another process.
class OpenedRange : public CudaRange {
 public:
  OpenedRange(int ordinal, const cudaIpcMemHandle_t& handle);
  ~OpenedRange() override;

 private:
  int ordinal_;
};

// Memory of another owner in this process; the owner frees it.
class BorrowedRange : public CudaRange {
 public:
  explicit BorrowedRange(std::byte* data) { data_ = data; }
};

// Host memory that the GPUs access at its own address.
class RegisteredRange : public CudaRange {
 public:
  explicit RegisteredRange(Memory memory);
  ~RegisteredRange() override;
  const Memory& memory() const noexcept { return memory_; }

 private:
  Memory memory_;
};

// A part of a range, from `offset` on.
Memory own(Place place, Bytes bytes, Allocation allocation, std::shared_ptr<CudaRange> range, Bytes offset = 0);

}  // namespace waywiser
