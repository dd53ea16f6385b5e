#include "waywiser/device/strided_copy.hpp"

#include "waywiser/base/error.hpp"
#include "waywiser/device/stream.hpp"

namespace waywiser {
namespace {

void check_rows(ConstRegion packed, ConstRegion array, const StridedRows& rows) {
  if (packed.bytes != rows.bytes())
    throw Error(ErrorKind::invalid_input, "a strided copy of " + std::to_string(rows.bytes()) + " bytes, to or from " +
                                              std::to_string(packed.bytes));
  if (rows.planes > 1 && rows.rows > 1 && (rows.row_stride == 0 || rows.plane_stride % rows.row_stride != 0))
    throw Error(ErrorKind::invalid_input, "a strided copy: planes are not a multiple of the rows' stride apart");
  if (rows.bytes() == 0) return;
  const std::size_t end = rows.offset + (rows.planes - 1) * rows.plane_stride + (rows.rows - 1) * rows.row_stride;
  if (end + rows.width > array.bytes)
    throw Error(ErrorKind::invalid_input, "a strided copy beyond the end of an array");
}

template <typename Copy>
void for_rows(const StridedRows& rows, Copy copy) {
  for (std::size_t plane = 0, at = 0; plane < rows.planes; ++plane)
    for (std::size_t row = 0; row < rows.rows; ++row, at += rows.width)
      copy(at, rows.offset + plane * rows.plane_stride + row * rows.row_stride);
}

}  // namespace

void gather_rows(Stream& stream, Region packed, ConstRegion array, const StridedRows& rows) {
  check_rows(packed, array, rows);
  if (rows.bytes() == 0) return;
  if (stream.native() != nullptr) return copy_rows_by_cuda(stream, packed.data, array.data, rows, true);
  for_rows(rows, [&](std::size_t at, std::size_t from) {
    stream.copy(packed.slice(at, rows.width), array.slice(from, rows.width));
  });
}

void scatter_rows(Stream& stream, Region array, const StridedRows& rows, ConstRegion packed) {
  check_rows(packed, array, rows);
  if (rows.bytes() == 0) return;
  if (stream.native() != nullptr) return copy_rows_by_cuda(stream, packed.data, array.data, rows, false);
  for_rows(rows, [&](std::size_t at, std::size_t to) {
    stream.copy(array.slice(to, rows.width), packed.slice(at, rows.width));
  });
}

}  // namespace waywiser
