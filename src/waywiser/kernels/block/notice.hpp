#pragma once

#include <cstdint>

namespace waywiser::block {

// Why a wait has ended without success.
enum class Reason : std::uint32_t { late, unlike, stopped };

// In host memory: how an operation has failed, visible to the host without asking the GPU; and the word that ends all
// waits.
struct alignas(16) Notice {
  std::uint64_t failed = 0;                        // 1 + the rank waited for, with the reason above it; written last
  std::uint64_t number = 0, mine = 0, theirs = 0;  // of the operation, and both descriptions
  std::uint32_t stop = 0;
  // Where the context must outlive a failure: the address, for kernels, of a word in the GPU's memory, which a kernel
  // that gives up sets before it ends. 0: it traps.
  std::uint64_t kept = 0;
};

}  // namespace waywiser::block
