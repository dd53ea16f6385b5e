// Memory of the GPU and of the host.
#include <algorithm>
#include <cstring>

#include "remote_devices.hpp"

using namespace waywiser;

namespace {

constexpr std::size_t pitch_unit = 512;

CUdeviceptr address_of(const void* data) { return static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(data)); }

void allocate_host(RemoteDevices& devices, void** data, std::size_t bytes) {
  if (bytes == 0) end_with(CUDA_ERROR_INVALID_VALUE);
  RemoteDevice& device = devices.current();
  const PinnedMemory memory = device.gpu().pinned(bytes);
  given_place(data) = memory.region().data;
  device.host.emplace(memory.region().data, memory);
}

// The allocation of cuMemHostAlloc in which an address lies.
std::optional<Region> host_part(RemoteDevice& device, const void* data) {
  auto found = device.host.upper_bound(const_cast<void*>(data));
  if (found == device.host.begin()) return {};
  const Region region = (--found)->second.region();
  const auto* address = static_cast<const std::byte*>(data);
  return address < region.data + region.bytes ? std::optional(region) : std::nullopt;
}

void write_attribute(RemoteDevice& device, void* to, CUpointer_attribute attribute, CUdeviceptr pointer) {
  const auto put = [to]<typename Value>(Value value) {
    std::memcpy(&given_place(static_cast<Value*>(to)), &value, sizeof value);
  };
  const auto part = device.find(pointer, 1);
  void* const address = reinterpret_cast<void*>(static_cast<std::uintptr_t>(pointer));
  const auto host = host_part(device, address);
  if (!part && !host) end_with(CUDA_ERROR_INVALID_VALUE);
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: return put(reinterpret_cast<std::uintptr_t>(context_stack().back()));
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: return put(static_cast<unsigned>(part ? 2 : 1));
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      if (!part) end_with(CUDA_ERROR_INVALID_VALUE);
      return put(pointer);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (part) end_with(CUDA_ERROR_INVALID_VALUE);
      return put(reinterpret_cast<std::uintptr_t>(address));
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: return put(false);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return put(device.number());
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: return put(part ? part->start : address_of(host->data));
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: return put(static_cast<std::size_t>(part ? part->whole : host->bytes));
    default: end_with(CUDA_ERROR_NOT_SUPPORTED);
  }
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

CUresult cuMemAlloc_v2(CUdeviceptr* address, std::size_t bytes) {
  return forwarded("cuMemAlloc", [&](RemoteDevices& devices) {
    given_place(address);
    *address = devices.current().allocate(bytes);
  });
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* address, std::size_t* pitch, std::size_t width, std::size_t height,
                            unsigned element) {
  return forwarded("cuMemAllocPitch", [&](RemoteDevices& devices) {
    const bool is_size = element == 4 || element == 8 || element == 16;
    if (!is_size || width == 0 || height == 0 || width > (std::size_t{1} << 40) || height > (std::size_t{1} << 20))
      end_with(CUDA_ERROR_INVALID_VALUE);
    given_place(address), given_place(pitch);
    *pitch = (width + pitch_unit - 1) / pitch_unit * pitch_unit;
    *address = devices.current().allocate(*pitch * height);
  });
}

CUresult cuMemFree_v2(CUdeviceptr address) {
  return forwarded("cuMemFree", [&](RemoteDevices& devices) { devices.current().free(address); });
}

CUresult cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  return forwarded("cuMemGetInfo", [&](RemoteDevices& devices) {
    RemoteDevice& device = devices.current();
    const Bytes limit = device.gpu().limit();
    given_place(total) = limit;
    given_place(free) = limit - std::min<Bytes>(limit, device.used());
  });
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* start, std::size_t* bytes, CUdeviceptr address) {
  return forwarded("cuMemGetAddressRange", [&](RemoteDevices& devices) {
    const auto part = devices.current().find(address, 1);
    if (!part) end_with(CUDA_ERROR_NOT_FOUND);
    if (start != nullptr) *start = part->start;
    if (bytes != nullptr) *bytes = part->whole;
  });
}

CUresult cuMemAllocHost_v2(void** data, std::size_t bytes) {
  return forwarded("cuMemAllocHost", [&](RemoteDevices& devices) { allocate_host(devices, data, bytes); });
}
CUresult cuMemHostAlloc(void** data, std::size_t bytes, unsigned) {
  return forwarded("cuMemHostAlloc", [&](RemoteDevices& devices) { allocate_host(devices, data, bytes); });
}

CUresult cuMemFreeHost(void* data) {
  return forwarded("cuMemFreeHost", [&](RemoteDevices& devices) {
    if (devices.current().host.erase(data) == 0) end_with(CUDA_ERROR_INVALID_VALUE);
  });
}

CUresult cuMemHostGetFlags(unsigned* flags, void* data) {
  return forwarded("cuMemHostGetFlags", [&](RemoteDevices& devices) {
    if (!host_part(devices.current(), data)) end_with(CUDA_ERROR_INVALID_VALUE);
    given_place(flags) = 0;
  });
}

// Ordinary memory stays what it is: the bytes travel as those of any other.
CUresult cuMemHostRegister_v2(void* data, std::size_t bytes, unsigned) {
  return forwarded("cuMemHostRegister", [&](RemoteDevices& devices) {
    if (data == nullptr || bytes == 0 || !devices.current().registered.insert(data).second)
      end_with(CUDA_ERROR_INVALID_VALUE);
  });
}
CUresult cuMemHostUnregister(void* data) {
  return forwarded("cuMemHostUnregister", [&](RemoteDevices& devices) {
    if (devices.current().registered.erase(data) == 0) end_with(CUDA_ERROR_INVALID_VALUE);
  });
}

CUresult cuPointerGetAttribute(void* to, CUpointer_attribute attribute, CUdeviceptr pointer) {
  return forwarded("cuPointerGetAttribute",
                   [&](RemoteDevices& devices) { write_attribute(devices.current(), to, attribute, pointer); });
}

// What an address has not is 0, as in CUDA.
CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** to, CUdeviceptr pointer) {
  return forwarded("cuPointerGetAttributes", [&](RemoteDevices& devices) {
    for (unsigned i = 0; i < count; ++i) {
      try {
        write_attribute(devices.current(), (&given_place(to))[i], (&given_place(attributes))[i], pointer);
      } catch (const DriverCode&) {
        std::memset((&given_place(to))[i], 0, attributes[i] == CU_POINTER_ATTRIBUTE_IS_MANAGED ? 1 : 4);
      }
    }
  });
}
}
#pragma GCC visibility pop
