#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "nixl_types.hpp"

namespace waywiser_nixl {

// What another process needs to reach GPU memory: the driver's handle of its allocation, and where it lies in it.
struct GpuExport {
  std::array<unsigned char, 64> handle{};
  std::uint64_t offset = 0;
};

// The CUDA driver, if this process has one: GPU memory of this process, and of other processes by the driver's handles.
class GpuDriver {
 public:
  // Null: there is no driver. Nothing of it is used until the first call: a process that forks later could not use it.
  static const GpuDriver* find();

  GpuExport share(std::uint64_t address, std::uint64_t bytes) const;  // throws Refusal
  // Where the allocation lies in this process; close() ends that.
  std::uint64_t open(const GpuExport& shared) const;  // throws Refusal
  void close(std::uint64_t base) const noexcept;
  // Of the allocation that lies there, in this process. Throws Refusal.
  std::uint64_t allocated_bytes(std::uint64_t base) const;

  // As many bytes on both sides; each in memory of a GPU or of this process. Complete when it returns. Throws Refusal.
  void copy(Operation operation, std::span<const iovec> local, std::span<const iovec> remote) const;

  // Locks the pages of host memory of this process for the GPU, which then copies them at the rate of its bus. False:
  // the driver does not, and copies more slowly.
  bool lock_pages(void* memory, std::size_t bytes) const noexcept;
  void unlock_pages(void* memory) const noexcept;

 private:
  struct Functions;

  class Inside;

  explicit GpuDriver(Functions& functions) : functions_(functions) {}

  Functions& functions_;
};

// Host memory of this process with locked pages while it lives, if the driver locks them.
class LockedPages {
 public:
  LockedPages(const GpuDriver& gpu, void* memory, std::size_t bytes)
      : gpu_(gpu), memory_(gpu.lock_pages(memory, bytes) ? memory : nullptr) {}
  LockedPages(const LockedPages&) = delete;
  LockedPages& operator=(const LockedPages&) = delete;
  ~LockedPages() {
    if (memory_ != nullptr) gpu_.unlock_pages(memory_);
  }

 private:
  const GpuDriver& gpu_;
  void* const memory_;
};

}  // namespace waywiser_nixl
