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
// It has been tried with a made-up driver only.
class GpuDriver {
 public:
  // Null: there is no driver. Nothing of it is used until the first call: a process that forks later could not use it.
  static const GpuDriver* find();

  GpuExport share(std::uint64_t address, std::uint64_t bytes) const;  // throws Refusal
  // Where the allocation lies in this process; close() ends that.
  std::uint64_t open(const GpuExport& shared) const;  // throws Refusal
  void close(std::uint64_t base) const noexcept;

  // As many bytes on both sides; each in memory of a GPU or of this process. Complete when it returns. Throws Refusal.
  void copy(Operation operation, std::span<const iovec> local, std::span<const iovec> remote) const;

 private:
  struct Functions;

  class Inside;

  explicit GpuDriver(Functions& functions) : functions_(functions) {}

  Functions& functions_;
};

}  // namespace waywiser_nixl
