#pragma once

#include <cstddef>

#include "waywiser/device/region.hpp"

namespace waywiser {

class Stream;

// Rows of bytes in an array: planes of rows, each as far from the one before.
struct StridedRows {
  std::size_t offset = 0, width = 0;     // where the first row begins; bytes of each
  std::size_t rows = 1, row_stride = 0;  // of a plane; bytes from one to the next
  std::size_t planes = 1, plane_stride = 0;

  std::size_t bytes() const noexcept { return width * rows * planes; }
  bool operator==(const StridedRows&) const = default;
};

// One copy by the copy engine, of rows to memory where they lie one after the other, or back. Enqueued; a virtual GPU
// copies row by row. If there are several planes, their stride must be a multiple of the rows'. Throw as Stream::copy.
void gather_rows(Stream& stream, Region packed, ConstRegion array, const StridedRows& rows);
void scatter_rows(Stream& stream, Region array, const StridedRows& rows, ConstRegion packed);

// The same on a stream of CUDA, either way: unavailable in a build without CUDA.
void copy_rows_by_cuda(Stream& stream, const std::byte* packed, const std::byte* array, const StridedRows& rows,
                       bool gathers);

}  // namespace waywiser
