#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "waywiser/base/error.hpp"
#include "waywiser/device/cuda/check.hpp"
#include "waywiser/device/cuda/cuda_platform.hpp"
#include "waywiser/device/cuda/driver.hpp"
#include "waywiser/device/peer_switch.hpp"

namespace waywiser {
namespace {

// A small cudaMalloc is a part of a larger block, and an IPC handle opens the block.
Bytes offset_in_allocation(const std::byte* data) {
  CUdeviceptr start = 0;
  std::size_t length = 0;
  const auto address = static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(data));
  check_driver(driver().mem_address_range(&start, &length, address), "cuMemGetAddressRange");
  return address - start;
}

}  // namespace

MemoryHandle CudaPlatform::export_memory(const Memory& memory) {
  const auto* block = dynamic_cast<const CudaMemoryOwner*>(memory.block());
  if (block == nullptr) return host_->export_memory(memory);
  if (const auto* registered = dynamic_cast<const RegisteredRange*>(block->range.get()))
    return host_->export_memory(registered->memory());
  MemoryHandle handle;
  handle.place = block->region.place;
  handle.bytes = block->region.bytes;
  if (const auto* mapped = dynamic_cast<const MappedRange*>(block->range.get())) {
    handle.kind = HandleKind::gpu_descriptor;
    handle.descriptor = mapped->export_descriptor();
    return handle;
  }
  handle.kind = HandleKind::cuda_ipc;
  cudaIpcMemHandle_t native{};
  static_assert(sizeof native == sizeof handle.opaque);
  const CurrentDevice current(ordinal(handle.place.index));
  check_cuda(cudaIpcGetMemHandle(&native, block->range->data()), "cudaIpcGetMemHandle");
  std::memcpy(handle.opaque.data(), &native, sizeof native);
  handle.offset = offset_in_allocation(block->range->data());
  const std::scoped_lock lock(mutex_);
  exported_[{handle.opaque, handle.offset}] = block->range;
  return handle;
}

std::shared_ptr<CudaRange> CudaPlatform::exported_here(const MemoryHandle& handle) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(exported_, [](const auto& entry) { return entry.second.expired(); });
  const auto found = exported_.find({handle.opaque, handle.offset});
  return found == exported_.end() ? nullptr : found->second.lock();
}

std::shared_ptr<CudaRange> CudaPlatform::open_ipc(const MemoryHandle& handle, int user) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(open_handles_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<CudaRange>& known = open_handles_[{handle.opaque, user}];
  if (auto open = known.lock()) return open;
  cudaIpcMemHandle_t native{};
  std::memcpy(&native, handle.opaque.data(), sizeof native);
  auto opened = std::make_shared<OpenedRange>(user, native);
  known = opened;
  return opened;
}

Memory CudaPlatform::open_memory_for(const MemoryHandle& handle, Place user) {
  if (handle.kind == HandleKind::cuda_ipc) {
    if (auto mine = exported_here(handle)) return own(handle.place, handle.bytes, Allocation::gpu, std::move(mine));
    const std::shared_ptr<CudaRange> opened = open_ipc(handle, ordinal((user.is_gpu() ? user : handle.place).index));
    return own(handle.place, handle.bytes, Allocation::gpu, opened, handle.offset);
  }
  if (handle.kind == HandleKind::gpu_descriptor)
    return own(handle.place, handle.bytes, Allocation::gpu_mapped,
               std::make_shared<MappedRange>(handle.descriptor, ordinal(handle.place.index), handle.bytes,
                                             reachers(handle.place.index)));
  const CurrentDevice current(devices_.front().ordinal);
  return own(handle.place, handle.bytes, Allocation::shared,
             std::make_shared<RegisteredRange>(host_->open_memory(handle)));
}

SharedRegion CudaPlatform::share(ConstRegion region) {
  SharedRegion shared;
  const std::string name = identity(region.place.index);
  if (name.size() >= shared.gpu.size()) throw Error(ErrorKind::unavailable, "GPU " + name + ": too long a name");
  std::ranges::copy(name, shared.gpu.begin());
  const CurrentDevice current(ordinal(region.place.index));
  shared.offset = offset_in_allocation(region.data);
  shared.bytes = region.bytes;
  shared.address = reinterpret_cast<std::uintptr_t>(region.data) - shared.offset;
  shared.allocation_bytes = shared.offset + region.bytes;
  shared.process = static_cast<std::uint64_t>(::getpid());
  cudaIpcMemHandle_t native{};
  const cudaError_t result = cudaIpcGetMemHandle(&native, const_cast<std::byte*>(region.data));
  if (result == cudaErrorInvalidValue || result == cudaErrorNotSupported) {
    cudaGetLastError();
    throw Error(
        ErrorKind::unavailable,
        "CUDA cannot share this memory with other processes: only memory of cudaMalloc, not that of memory pools "
        "or of virtual memory management");
  }
  check_cuda(result, "cudaIpcGetMemHandle");
  std::memcpy(shared.opaque.data(), &native, sizeof native);
  return shared;
}

Memory CudaPlatform::open_shared(const SharedRegion& shared, Place user) {
  const Place place = find_gpu(shared.identity()).value_or(user);
  if (peer_access_off_ && shared.identity() != identity(user.index))
    throw Error(ErrorKind::unavailable, "GPU " + std::to_string(user.index) + " cannot map GPU " +
                                            std::string(shared.identity()) + " (" + peer_access_is_off + ")");
  if (shared.process == static_cast<std::uint64_t>(::getpid())) {
    set_peer_access(user.index, place.index, true);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): of this very process
    auto* data = reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(shared.address));
    return own(place, shared.allocation_bytes, Allocation::gpu, std::make_shared<BorrowedRange>(data));
  }
  MemoryHandle handle;
  handle.place = place;
  handle.opaque = shared.opaque;
  return own(place, shared.allocation_bytes, Allocation::gpu, open_ipc(handle, ordinal(user.index)));
}

}  // namespace waywiser
