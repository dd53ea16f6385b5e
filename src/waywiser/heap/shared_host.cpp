#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "waywiser/device/mapping.hpp"
#include "waywiser/heap/heap_state.hpp"

namespace waywiser {
namespace {

// The contents of SharedRegion::opaque: the memory file as its process has opened it, and the identity of that file.
struct MemoryFile {
  std::int64_t number = -1;
  std::uint64_t device = 0, node = 0;
};

MemoryFile describe(int number) {
  struct stat facts{};
  if (::fstat(number, &facts) != 0) throw Error(ErrorKind::device, "host memory of a heap: " + last_system_error());
  return {number, facts.st_dev, facts.st_ino};
}

}  // namespace

SharedRegion share_host(const MemoryHandle& handle) {
  SharedRegion shared;
  shared.process = static_cast<std::uint64_t>(::getpid());
  shared.allocation_bytes = shared.bytes = handle.bytes;
  const MemoryFile file = describe(handle.descriptor.number());
  std::memcpy(shared.opaque.data(), &file, sizeof file);
  return shared;
}

// The kernel lets a process of the same user open it.
Memory open_shared_host(Platform& platform, const SharedRegion& shared, Place place) {
  MemoryFile file;
  std::memcpy(&file, shared.opaque.data(), sizeof file);
  const std::string path = "/proc/" + std::to_string(shared.process) + "/fd/" + std::to_string(file.number);
  MemoryHandle handle;
  handle.place = place;
  handle.bytes = shared.allocation_bytes;
  handle.descriptor = Descriptor(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!handle.descriptor.open()) throw Error(ErrorKind::device, path + ": " + last_system_error());
  const MemoryFile opened = describe(handle.descriptor.number());
  if (opened.device != file.device || opened.node != file.node)
    throw Error(ErrorKind::device, "the host memory that another rank has shared is gone");
  return platform.open_memory(handle);
}

}  // namespace waywiser
