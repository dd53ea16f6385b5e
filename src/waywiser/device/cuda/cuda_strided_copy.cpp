#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/device/cuda/cuda_stream.hpp"
#include "waywiser/device/strided_copy.hpp"

namespace waywiser {

void copy_rows_by_cuda(Stream& stream, const std::byte* packed, const std::byte* array, const StridedRows& rows,
                       bool gathers) {
  auto* own = dynamic_cast<CudaStream*>(&stream);
  if (own == nullptr) throw Error(ErrorKind::invalid_input, "this stream is not one of a CUDA device");
  const bool flat = rows.planes == 1 || rows.rows == 1;  // then one stride is enough
  const std::size_t height = flat ? rows.rows * rows.planes : rows.rows, depth = flat ? 1 : rows.planes;
  const std::size_t stride = height == 1 ? rows.width : rows.rows == 1 ? rows.plane_stride : rows.row_stride;
  const auto pointer = [&](const std::byte* at, std::size_t pitch, std::size_t rows_of_plane) {
    return cudaPitchedPtr{const_cast<std::byte*>(at), pitch, rows.width, rows_of_plane};
  };
  cudaMemcpy3DParms copy{};
  copy.srcPtr = pointer(array + rows.offset, stride, flat ? height : rows.plane_stride / rows.row_stride);
  copy.dstPtr = pointer(packed, rows.width, height);
  if (!gathers) std::swap(copy.srcPtr, copy.dstPtr);
  copy.extent = {rows.width, height, depth};
  copy.kind = cudaMemcpyDefault;
  own->copy(copy);
}

}  // namespace waywiser
