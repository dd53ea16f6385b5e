#pragma once

#include <cstdint>

#include "waywiser/device/memory.hpp"
#include "waywiser/device/stream.hpp"

namespace waywiser {

// Says that an operation of a job has failed on a GPU, where the program keeps its context then (OnFailure::raise):
// kernels that give up set a word in the GPU's memory, and the host one in its own. Both are set once and for good.
class KeptFailure {
 public:
  // Throws the platform's errors.
  KeptFailure(Platform& platform, Place gpu);

  // As kernels of that GPU reach them.
  std::uint32_t* on_gpu() const noexcept { return reached_; }
  const std::uint32_t* of_host() const noexcept { return told_; }
  // What ends from now on is no result. For any thread.
  void tell() noexcept;

 private:
  Memory on_gpu_, of_host_;
  std::uint32_t* reached_ = nullptr;
  const std::uint32_t* told_ = nullptr;
};

}  // namespace waywiser
