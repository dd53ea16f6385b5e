#include <vector>

#include "waywiser/base/error.hpp"
#include "waywiser/device/copy_batch.hpp"
#include "waywiser/device/cuda/check.hpp"
#include "waywiser/device/cuda/cuda_device.hpp"
#include "waywiser/device/cuda/cuda_stream.hpp"
#include "waywiser/device/cuda/driver.hpp"

namespace waywiser {

std::optional<std::string> why_no_copy_batches_of_cuda() {
#if CUDA_VERSION < 12080
  return "batches of copies need a build with CUDA 12.8 or later";
#else
  if (driver().copy_batch != nullptr) return {};
  return "the NVIDIA driver has no cuMemcpyBatchAsync: one of CUDA 12.8 or later is needed";
#endif
}

void copy_batch_by_cuda(Stream& stream, std::span<const Region> to, std::span<const ConstRegion> from) {
  auto* own = dynamic_cast<CudaStream*>(&stream);
  if (own == nullptr) throw Error(ErrorKind::invalid_input, "this stream is not one of a CUDA device");
  if (const auto why = why_no_copy_batches_of_cuda()) throw Error(ErrorKind::unavailable, *why);
  own->copy_batch(to, from);
}

void CudaStream::copy_batch([[maybe_unused]] std::span<const Region> to,
                            [[maybe_unused]] std::span<const ConstRegion> from) {
#if CUDA_VERSION >= 12080
  std::vector<CUdeviceptr> targets, sources;
  std::vector<std::size_t> bytes;
  const auto address = [](const std::byte* data) {
    return static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(data));
  };
  for (std::size_t i = 0; i < to.size(); ++i) {
    targets.push_back(address(to[i].data));
    sources.push_back(address(from[i].data));
    bytes.push_back(to[i].bytes);
  }
  CUmemcpyAttributes attributes{};
  attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  attributes.flags = CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE;
  std::size_t first = 0, failed = 0;  // of the copies that have these attributes; which copy was refused
  const CurrentDevice current(ordinal_);
  check_driver(driver().copy_batch(targets.data(), sources.data(), bytes.data(), bytes.size(), &attributes, &first, 1,
                                   &failed, stream_),
               "batch of copies on a stream");
#endif
}

}  // namespace waywiser
