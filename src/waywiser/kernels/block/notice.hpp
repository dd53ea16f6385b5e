#pragma once

#include <cstdint>

namespace waywiser::block {

// Why a wait has ended without what it was for.
enum class Reason : std::uint32_t { late, unlike, stopped };

// In host memory: how an operation has failed, where the host sees it without asking the GPU, and what ends all waits.
struct alignas(16) Notice {
  std::uint64_t failed = 0;  // 1 + the rank that was waited for, and above it the reason; the last that is written
  std::uint64_t number = 0, mine = 0, theirs = 0;  // of the operation, and the descriptions of both
  std::uint32_t stop = 0;
};

}  // namespace waywiser::block
