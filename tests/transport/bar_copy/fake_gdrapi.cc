// A GDRCopy for tests: "GPU" memory is host memory, mapped where it is. Counts what is pinned and mapped.
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace {
int session;
int live;
}  // namespace

extern "C" {

int fake_gdr_live() { return live; }

void* gdr_open() { return &session; }
int gdr_close(void*) { return 0; }
int gdr_pin_buffer(void*, unsigned long address, std::size_t bytes, std::uint64_t, std::uint32_t,
                   std::uint64_t* handle) {
  if (address % 65536 != 0 || bytes % 65536 != 0) return 22;
  *handle = address;
  ++live;
  return 0;
}
int gdr_unpin_buffer(void*, std::uint64_t) {
  --live;
  return 0;
}
int gdr_map(void*, std::uint64_t handle, void** address, std::size_t) {
  if (handle == 65536) return 12;
  *address = reinterpret_cast<void*>(handle);
  ++live;
  return 0;
}
int gdr_unmap(void*, std::uint64_t, void*, std::size_t) {
  --live;
  return 0;
}
int gdr_copy_to_mapping(std::uint64_t, void* mapped, const void* host, std::size_t bytes) {
  std::memcpy(mapped, host, bytes);
  return 0;
}
int gdr_copy_from_mapping(std::uint64_t, void* host, const void* mapped, std::size_t bytes) {
  std::memcpy(host, mapped, bytes);
  return 0;
}

}  // extern "C"
