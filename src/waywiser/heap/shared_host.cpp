#include "waywiser/device/mapping.hpp"
#include "waywiser/device/shared_file.hpp"
#include "waywiser/heap/heap_state.hpp"

namespace waywiser {

SharedRegion share_host(const MemoryHandle& handle) {
  SharedRegion shared;
  shared.allocation_bytes = shared.bytes = handle.bytes;
  name_file(shared, handle.descriptor.number());
  return shared;
}

Memory open_shared_host(Platform& platform, const SharedRegion& shared, Place place) {
  MemoryHandle handle;
  handle.place = place;
  handle.bytes = shared.allocation_bytes;
  handle.descriptor = open_file(shared);
  return platform.open_memory(handle);
}

}  // namespace waywiser
