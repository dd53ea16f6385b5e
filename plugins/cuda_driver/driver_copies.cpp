// Copies and memset. What comes to the host is there when the call returns; what leaves it may be changed again.
#include <algorithm>
#include <cstring>

#include "remote_devices.hpp"

using namespace waywiser;

namespace {

Region host_bytes(const void* data, std::size_t bytes) {
  if (data == nullptr && bytes != 0) end_with(CUDA_ERROR_INVALID_VALUE);
  return {static_cast<std::byte*>(const_cast<void*>(data)), bytes, host(0)};
}

void put(RemoteDevice& device, CUdeviceptr to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  const auto part = device.part(to, bytes);
  device.gpu().put(part.array, part.offset, host_bytes(from, bytes));
}

void get(RemoteDevice& device, void* to, CUdeviceptr from, std::size_t bytes) {
  if (bytes == 0) return;
  const auto part = device.part(from, bytes);
  device.driver().get(part.array, part.offset, host_bytes(to, bytes));
}

void move(RemoteDevice& device, CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  if (bytes == 0) return;
  const auto there = device.part(to, bytes), here = device.part(from, bytes);
  device.driver().copy(there.array, there.offset, here.array, here.offset, bytes);
}

// Of any two addresses: those of the GPU are known.
void move_any(RemoteDevice& device, CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  const auto on_host = [](CUdeviceptr address) {
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
  };
  const bool to_gpu = device.find(to, bytes).has_value(), from_gpu = device.find(from, bytes).has_value();
  if (to_gpu && from_gpu) return move(device, to, from, bytes);
  if (to_gpu) return put(device, to, on_host(from), bytes);
  if (from_gpu) return get(device, on_host(to), from, bytes);
  if (bytes != 0) std::memmove(on_host(to), on_host(from), bytes);
}

template <typename Copy>
CUresult in_stream(const char* call, CUstream stream, Copy copy) {
  return forwarded(call, [&](RemoteDevices& devices) {
    RemoteDevice& device = devices.current();
    use_stream(device, stream);
    copy(device);
  });
}

void fill(RemoteDevice& device, CUdeviceptr to, std::uint32_t value, unsigned unit, std::size_t count) {
  if (count == 0) return;
  if (count > (std::size_t{1} << 48) || to % unit != 0) end_with(CUDA_ERROR_INVALID_VALUE);
  const auto part = device.part(to, count * unit);
  device.driver().fill(part.array, part.offset, count * unit, value, unit);
}

// One row after the other; as one piece if nothing lies between them.
void copy_rows(RemoteDevice& device, const CUDA_MEMCPY2D& asked) {
  const auto is = [](CUmemorytype type, CUmemorytype wanted) {
    return type == wanted || type == CU_MEMORYTYPE_UNIFIED;
  };
  const auto start = [&](CUmemorytype type, const void* on_host, CUdeviceptr on_gpu) {
    if (type == CU_MEMORYTYPE_HOST) return static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(on_host));
    if (!is(type, CU_MEMORYTYPE_DEVICE)) end_with(CUDA_ERROR_NOT_SUPPORTED);
    return on_gpu;
  };
  const std::size_t width = asked.WidthInBytes, height = asked.Height;
  if (width == 0 || height == 0) return;
  const std::size_t source_pitch = asked.srcPitch == 0 ? width : asked.srcPitch;
  const std::size_t pitch = asked.dstPitch == 0 ? width : asked.dstPitch;
  if ((source_pitch < width || pitch < width) && height > 1) end_with(CUDA_ERROR_INVALID_VALUE);
  const CUdeviceptr from =
      start(asked.srcMemoryType, asked.srcHost, asked.srcDevice) + asked.srcY * source_pitch + asked.srcXInBytes;
  const CUdeviceptr to =
      start(asked.dstMemoryType, asked.dstHost, asked.dstDevice) + asked.dstY * pitch + asked.dstXInBytes;
  if (source_pitch == width && pitch == width) return move_any(device, to, from, width * height);
  for (std::size_t row = 0; row < height; ++row) move_any(device, to + row * pitch, from + row * source_pitch, width);
}

void fill_rows(RemoteDevice& device, CUdeviceptr to, std::size_t pitch, std::uint32_t value, unsigned unit,
               std::size_t width, std::size_t height) {
  if (pitch < width * unit && height > 1) end_with(CUDA_ERROR_INVALID_VALUE);
  for (std::size_t row = 0; row < height; ++row) fill(device, to + row * pitch, value, unit, width);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, std::size_t bytes) {
  return in_stream("cuMemcpyHtoD", nullptr, [&](RemoteDevice& device) { put(device, to, from, bytes); });
}
CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, std::size_t bytes) {
  return in_stream("cuMemcpyDtoH", nullptr, [&](RemoteDevice& device) { get(device, to, from, bytes); });
}
CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return in_stream("cuMemcpyDtoD", nullptr, [&](RemoteDevice& device) { move(device, to, from, bytes); });
}
CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return in_stream("cuMemcpy", nullptr, [&](RemoteDevice& device) { move_any(device, to, from, bytes); });
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream) {
  return in_stream("cuMemcpyHtoDAsync", stream, [&](RemoteDevice& device) { put(device, to, from, bytes); });
}
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return in_stream("cuMemcpyDtoHAsync", stream, [&](RemoteDevice& device) { get(device, to, from, bytes); });
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return in_stream("cuMemcpyDtoDAsync", stream, [&](RemoteDevice& device) { move(device, to, from, bytes); });
}
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return in_stream("cuMemcpyAsync", stream, [&](RemoteDevice& device) { move_any(device, to, from, bytes); });
}
CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* asked) {
  return in_stream("cuMemcpy2D", nullptr, [&](RemoteDevice& device) { copy_rows(device, given_place(asked)); });
}
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* asked) { return cuMemcpy2D_v2(asked); }
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* asked, CUstream stream) {
  return in_stream("cuMemcpy2DAsync", stream, [&](RemoteDevice& device) { copy_rows(device, given_place(asked)); });
}

// NOLINTBEGIN(bugprone-macro-parentheses): a type
#define WAYWISER_MEMSET(bits, Value)                                                                               \
  CUresult cuMemsetD##bits##_v2(CUdeviceptr to, Value value, std::size_t count) {                                  \
    return in_stream("cuMemsetD" #bits, nullptr,                                                                   \
                     [&](RemoteDevice& device) { fill(device, to, value, bits / 8, count); });                     \
  }                                                                                                                \
  CUresult cuMemsetD##bits##Async(CUdeviceptr to, Value value, std::size_t count, CUstream stream) {               \
    return in_stream("cuMemsetD" #bits "Async", stream,                                                            \
                     [&](RemoteDevice& device) { fill(device, to, value, bits / 8, count); });                     \
  }                                                                                                                \
  CUresult cuMemsetD2D##bits##_v2(CUdeviceptr to, std::size_t pitch, Value value, std::size_t width,               \
                                  std::size_t height) {                                                            \
    return in_stream("cuMemsetD2D" #bits, nullptr,                                                                 \
                     [&](RemoteDevice& device) { fill_rows(device, to, pitch, value, bits / 8, width, height); }); \
  }                                                                                                                \
  CUresult cuMemsetD2D##bits##Async(CUdeviceptr to, std::size_t pitch, Value value, std::size_t width,             \
                                    std::size_t height, CUstream stream) {                                         \
    return in_stream("cuMemsetD2D" #bits "Async", stream,                                                          \
                     [&](RemoteDevice& device) { fill_rows(device, to, pitch, value, bits / 8, width, height); }); \
  }
WAYWISER_MEMSET(8, unsigned char)
WAYWISER_MEMSET(16, unsigned short)
WAYWISER_MEMSET(32, unsigned int)
#undef WAYWISER_MEMSET
// NOLINTEND(bugprone-macro-parentheses)
}
#pragma GCC visibility pop

WAYWISER_PER_THREAD(cuMemcpyHtoD_v2, _ptds)
WAYWISER_PER_THREAD(cuMemcpyDtoH_v2, _ptds)
WAYWISER_PER_THREAD(cuMemcpyDtoD_v2, _ptds)
WAYWISER_PER_THREAD(cuMemcpy, _ptds)
WAYWISER_PER_THREAD(cuMemcpyHtoDAsync_v2, _ptsz)
WAYWISER_PER_THREAD(cuMemcpyDtoHAsync_v2, _ptsz)
WAYWISER_PER_THREAD(cuMemcpyDtoDAsync_v2, _ptsz)
WAYWISER_PER_THREAD(cuMemcpyAsync, _ptsz)
WAYWISER_PER_THREAD(cuMemcpy2D_v2, _ptds)
WAYWISER_PER_THREAD(cuMemcpy2DUnaligned_v2, _ptds)
WAYWISER_PER_THREAD(cuMemcpy2DAsync_v2, _ptsz)
WAYWISER_PER_THREAD(cuMemsetD8_v2, _ptds)
WAYWISER_PER_THREAD(cuMemsetD16_v2, _ptds)
WAYWISER_PER_THREAD(cuMemsetD32_v2, _ptds)
WAYWISER_PER_THREAD(cuMemsetD8Async, _ptsz)
WAYWISER_PER_THREAD(cuMemsetD16Async, _ptsz)
WAYWISER_PER_THREAD(cuMemsetD32Async, _ptsz)
