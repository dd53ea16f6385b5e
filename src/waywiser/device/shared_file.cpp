#include "waywiser/device/shared_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

// The contents of SharedRegion::opaque: the file as its process has opened it, and the identity of that file.
struct FileOfProcess {
  std::int64_t number = -1;
  std::uint64_t device = 0, node = 0;
};

FileOfProcess describe(int number) {
  struct stat facts{};
  if (::fstat(number, &facts) != 0) throw Error(ErrorKind::device, "a file of shared memory: " + last_system_error());
  return {number, facts.st_dev, facts.st_ino};
}

}  // namespace

void name_file(SharedRegion& shared, int number) {
  const FileOfProcess file = describe(number);
  static_assert(sizeof file <= sizeof shared.opaque);
  std::memcpy(shared.opaque.data(), &file, sizeof file);
  shared.process = static_cast<std::uint64_t>(::getpid());
}

// The kernel lets a process of the same user open it.
Descriptor open_file(const SharedRegion& shared) {
  FileOfProcess file;
  std::memcpy(&file, shared.opaque.data(), sizeof file);
  const std::string path = "/proc/" + std::to_string(shared.process) + "/fd/" + std::to_string(file.number);
  Descriptor opened(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!opened.open()) throw Error(ErrorKind::device, path + ": " + last_system_error());
  const FileOfProcess found = describe(opened.number());
  if (found.device != file.device || found.node != file.node)
    throw Error(ErrorKind::device, "the memory that another process has shared is gone");
  return opened;
}

}  // namespace waywiser
