#include "waywiser/device/host_memory.hpp"

#include "waywiser/base/error.hpp"
#include "waywiser/device/numa.hpp"

namespace waywiser {

std::optional<std::string> why_not_host_allocation(Allocation allocation) {
  if (allocation != Allocation::gpu && allocation != Allocation::gpu_mapped) return {};
  return "a GPU allocation is not possible in host memory";
}

std::unique_ptr<HostMemoryOwner> allocate_host(Place place, Bytes bytes, Allocation allocation, bool bind) {
  if (const auto why = why_not_host_allocation(allocation))
    throw Error(ErrorKind::unavailable, text(place) + ": " + *why);
  auto block = std::make_unique<HostMemoryOwner>();
  if (allocation == Allocation::shared) {
    block->file = create_shared_file(bytes, text(place));
    block->mapping = Mapping::of_file(block->file, bytes, true, text(place));
  } else {
    block->mapping = Mapping::anonymous(bytes, text(place));
  }
  if (bind) bind_to_node(block->mapping, place.index);  // Platform::state() shows a refusal
  block->region = {block->mapping.data(), bytes, place};
  block->allocation = allocation;
  return block;
}

MemoryHandle export_host(const Memory& memory) {
  const auto* block = dynamic_cast<const HostMemoryOwner*>(memory.block());
  if (block == nullptr || !block->file.open())
    throw Error(ErrorKind::unavailable,
                text(memory.region().place) + ": only memory allocated as shared can be opened by another process");
  MemoryHandle handle;
  handle.kind = HandleKind::descriptor;
  handle.place = block->region.place;
  handle.bytes = block->region.bytes;
  handle.descriptor = block->file.duplicate();
  return handle;
}

std::unique_ptr<HostMemoryOwner> open_host(const MemoryHandle& handle) {
  const std::string what = text(handle.place);
  if (handle.kind != HandleKind::descriptor || handle.place.is_gpu())
    throw Error(ErrorKind::device, what + ": the handle is not one of shared host memory");
  check_shared_file(handle.descriptor, handle.bytes, what);
  auto block = std::make_unique<HostMemoryOwner>();
  block->file = handle.descriptor.duplicate();
  block->mapping = Mapping::of_file(block->file, handle.bytes, true, what);
  block->region = {block->mapping.data(), handle.bytes, handle.place};
  block->allocation = Allocation::shared;
  return block;
}

}  // namespace waywiser
