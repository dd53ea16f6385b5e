#include "waywiser/device/mapping.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <string>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

[[noreturn]] void refuse(std::string_view what, const std::string& why) {
  throw Error(ErrorKind::device, std::string(what) + ": " + why);
}

[[noreturn]] void out_of_memory(std::string_view what, Bytes bytes) {
  refuse(what, "cannot allocate " + format_bytes(bytes) + " bytes: " + last_system_error());
}

}  // namespace

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(data_, length_);
}

Mapping Mapping::anonymous(Bytes bytes, std::string_view what) {
  const Bytes length = round_up_to_pages(bytes);
  void* data = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) out_of_memory(what, bytes);
  return {data, length};
}

Mapping Mapping::of_file(const Descriptor& file, Bytes bytes, bool touchable, std::string_view what) {
  const Bytes length = round_up_to_pages(bytes);
  const int protection = touchable ? PROT_READ | PROT_WRITE : PROT_NONE;
  void* data = ::mmap(nullptr, length, protection, MAP_SHARED, file.number(), 0);
  if (data == MAP_FAILED) out_of_memory(what, bytes);
  return {data, length};
}

Bytes page_size() { return static_cast<Bytes>(::sysconf(_SC_PAGESIZE)); }

Bytes round_up_to_pages(Bytes bytes) {
  const Bytes page = page_size();
  const Bytes most = std::numeric_limits<Bytes>::max() / 4;
  return std::max(page, (std::min(bytes, most) + page - 1) / page * page);
}

Descriptor create_shared_file(Bytes bytes, std::string_view what) {
  Descriptor file(::memfd_create("waywiser", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.open()) refuse(what, "cannot create a memory file: " + last_system_error());
  if (::ftruncate(file.number(), static_cast<off_t>(round_up_to_pages(bytes))) != 0) out_of_memory(what, bytes);
  if (::fcntl(file.number(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
    refuse(what, "cannot fix the size of a memory file: " + last_system_error());
  return file;
}

void check_shared_file(const Descriptor& file, Bytes bytes, std::string_view what) {
  struct stat facts{};
  if (!file.open() || ::fstat(file.number(), &facts) != 0)
    refuse(what, "the handle of another process's memory has no valid descriptor");
  const int seals = ::fcntl(file.number(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
    refuse(what, "the handle of another process's memory is not a memory file of fixed size");
  if (facts.st_size < 0 || static_cast<Bytes>(facts.st_size) < bytes)
    refuse(what, "the handle of another process's memory promises " + format_bytes(bytes) + " bytes, its file has " +
                     std::to_string(facts.st_size));
}

}  // namespace waywiser
