#pragma once

#include <optional>
#include <string>

#include "waywiser/device/mapping.hpp"
#include "waywiser/device/memory.hpp"

namespace waywiser {

// Host memory without any GPU, for the host and virtual GPU back ends. pinned means pageable here.
struct HostMemoryOwner : MemoryOwner {
  Mapping mapping;
  Descriptor file;  // Allocation::shared
};

// Empty, or the reason: not a kind of host memory.
std::optional<std::string> why_not_host_allocation(Allocation allocation);
// `bind`: from the NUMA node of `place`, as far as the system allows. Throws device.
std::unique_ptr<HostMemoryOwner> allocate_host(Place place, Bytes bytes, Allocation allocation, bool bind);
// Throws unavailable unless allocated as shared.
MemoryHandle export_host(const Memory& memory);
// Throws device if the handle is not from export_host.
std::unique_ptr<HostMemoryOwner> open_host(const MemoryHandle& handle);

}  // namespace waywiser
