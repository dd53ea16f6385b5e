#pragma once

#include <optional>
#include <string>

#include "waywiser/device/mapping.hpp"
#include "waywiser/device/memory.hpp"

namespace waywiser {

// Host memory without any GPU: what the host and the virtual GPU back ends allocate. pinned is pageable here.
struct HostMemoryOwner : MemoryOwner {
  Mapping mapping;
  Descriptor file;  // Allocation::shared
};

// Nothing, or why: not a kind of host memory.
std::optional<std::string> why_not_host_allocation(Allocation allocation);
// `bind`: from the NUMA node of `place`, as far as the system allows. Throws device.
std::unique_ptr<HostMemoryOwner> allocate_host(Place place, Bytes bytes, Allocation allocation, bool bind);
// Throws unavailable unless allocated as shared.
MemoryHandle export_host(const Memory& memory);
// Throws device when the handle is not what export_host gave.
std::unique_ptr<HostMemoryOwner> open_host(const MemoryHandle& handle);

}  // namespace waywiser
