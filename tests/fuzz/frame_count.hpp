#pragma once

#include <cstdint>
#include <cstdio>

namespace waywiser::fuzz {

// How many frames a target has read, told at the end of a run of the fuzzer: an input has several.
struct FrameCount {
  std::uint64_t frames = 0;
  FrameCount() = default;
  FrameCount(const FrameCount&) = delete;
  FrameCount& operator=(const FrameCount&) = delete;
  ~FrameCount() {
    if (frames > 10'000) std::fprintf(stderr, "frames: %llu\n", static_cast<unsigned long long>(frames));
  }
};

}  // namespace waywiser::fuzz
