#pragma once

#include <cstdint>

namespace waywiser {

// Equal runs of 32-bit values of an array, at equal distances; all numbers in values.
struct Rows {
  std::int64_t first = 0, run = 0, pitch = 0, rows = 0;
};

// Kernels as a program without this library has them: one thread for each value.
void pack_rows(void* cuda_stream, const float* array, const Rows& rows, float* packed);
void unpack_rows(void* cuda_stream, float* array, const Rows& rows, const float* packed);

}  // namespace waywiser
