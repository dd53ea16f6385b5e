#include "waywiser/storage/storage_file.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "waywiser/base/error.hpp"
#include "waywiser/device/mapping.hpp"

namespace waywiser {
namespace {

Descriptor opened(const std::filesystem::path& path, int flags) {
  Descriptor file(::open(path.c_str(), flags | O_CLOEXEC));
  if (!file.open()) throw Error(ErrorKind::io, path.string() + ": cannot open it: " + last_system_error());
  return file;
}

struct stat status(int descriptor, const std::string& path) {
  struct stat about{};
  if (::fstat(descriptor, &about) != 0) throw Error(ErrorKind::io, path + ": " + last_system_error());
  return about;
}

// By cachestat, which kernels have from 6.5 on: it takes a tenth of the time of a mapping.
std::optional<bool> counted_in_cache(int descriptor, Bytes page) {
  constexpr long cachestat = 451;  // x86-64, AArch64, POWER, RISC-V, s390x
  const std::uint64_t range[2] = {page * page_size(), page_size()};
  std::uint64_t counts[5] = {};  // cached, dirty, being written, evicted, evicted lately
  if (::syscall(cachestat, descriptor, range, counts, 0) != 0) return {};
  return counts[0] != 0;
}

bool in_cache(int descriptor, Bytes page) {
  if (const std::optional<bool> counted = counted_in_cache(descriptor, page)) return *counted;
  const Bytes length = page_size();
  void* at = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, descriptor, static_cast<off_t>(page * length));
  if (at == MAP_FAILED) return false;
  unsigned char resident = 0;
  const bool known = ::mincore(at, length, &resident) == 0;
  ::munmap(at, length);
  return known && (resident & 1) != 0;
}

}  // namespace

StorageFile StorageFile::for_reading(const std::filesystem::path& path) {
  Descriptor file = opened(path, O_RDONLY | O_NONBLOCK);  // a pipe would wait for its writer
  const mode_t mode = status(file.number(), path.string()).st_mode;
  if (!S_ISREG(mode) && !S_ISBLK(mode)) refuse_input(path.string(), "is neither a file nor a block device");
  return {std::move(file), path.string(), FileUse::read};
}

StorageFile::StorageFile(Descriptor descriptor, std::string path, FileUse use)
    : path_(std::move(path)), cached_(std::move(descriptor)), block_(page_size()), memory_alignment_(page_size()) {
  open_direct(use);
}

// Opened by its descriptor, since the path may lead to another file by now. Blocks are whole pages: what goes through
// the page cache, head and tail, then shares no page with what goes past it.
void StorageFile::open_direct(FileUse use) {
  const std::string again = "/proc/self/fd/" + std::to_string(cached_.number());
  direct_ = Descriptor(::open(again.c_str(), (use == FileUse::read ? O_RDONLY : O_RDWR) | O_DIRECT | O_CLOEXEC));
  if (!direct_.open()) {
    why_not_direct_ = errno == EINVAL ? "its file system has no direct access (O_DIRECT)"
                                      : "it cannot be opened for direct access (O_DIRECT): " + last_system_error();
    return;
  }
#ifdef STATX_DIOALIGN
  struct statx about{};
  if (::statx(cached_.number(), "", AT_EMPTY_PATH, STATX_DIOALIGN, &about) != 0) return;
  if ((about.stx_mask & STATX_DIOALIGN) == 0) return;
  if (about.stx_dio_offset_align == 0) {
    direct_ = {};
    why_not_direct_ = "its file system has no direct access to this file (O_DIRECT)";
    return;
  }
  block_ = std::max<Bytes>(block_, about.stx_dio_offset_align);
  memory_alignment_ = std::max<Bytes>(1, about.stx_dio_mem_align);
#endif
}

bool StorageFile::can_go_directly(const FilePart& piece) const noexcept {
  return piece.offset % block_ == 0 && piece.memory.bytes % block_ == 0 &&
         std::bit_cast<std::uintptr_t>(piece.memory.data) % memory_alignment_ == 0;
}

Bytes StorageFile::size() const {
  const struct stat about = status(cached_.number(), path_);
  if (!S_ISBLK(about.st_mode)) return static_cast<Bytes>(about.st_size);
  std::uint64_t bytes = 0;
  if (::ioctl(cached_.number(), BLKGETSIZE64, &bytes) != 0)
    throw Error(ErrorKind::io, path_ + ": its size is not known: " + last_system_error());
  return bytes;
}

bool StorageFile::seems_cached(Bytes offset, Bytes bytes) const {
  if (bytes == 0) return true;
  const Bytes first = offset / page_size(), last = (offset + bytes - 1) / page_size();
  if (!in_cache(cached_.number(), last)) return false;
  return first == last || (in_cache(cached_.number(), first) && in_cache(cached_.number(), first + (last - first) / 2));
}

bool StorageFile::drop_cache() const {
  const Bytes bytes = size();
  ::posix_fadvise(cached_.number(), 0, 0, POSIX_FADV_DONTNEED);
  return bytes == 0 || !(in_cache(cached_.number(), 0) || in_cache(cached_.number(), (bytes - 1) / page_size()));
}

void StorageFile::synchronize() const {
  if (::fsync(cached_.number()) != 0) throw Error(ErrorKind::io, path_ + ": cannot write it: " + last_system_error());
}

void StorageFile::transfer(FileUse use, int descriptor, const FilePart& piece) const {
  for (Bytes done = 0; done < piece.memory.bytes;) {
    std::byte* at = piece.memory.data + done;
    const Bytes left = piece.memory.bytes - done;
    const auto offset = static_cast<off_t>(piece.offset + done);
    const ssize_t moved =
        use == FileUse::read ? ::pread(descriptor, at, left, offset) : ::pwrite(descriptor, at, left, offset);
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0) fail(use, {piece.offset + done, piece.memory.slice(done, left)}, last_system_error());
    if (moved == 0) fail_short(use, piece);
    done += static_cast<Bytes>(moved);
  }
}

void StorageFile::fail(FileUse use, const FilePart& piece, const std::string& why) const {
  throw Error(ErrorKind::io, path_ + ": cannot " + (use == FileUse::read ? "read " : "write ") +
                                 std::to_string(piece.memory.bytes) + " bytes at " + std::to_string(piece.offset) +
                                 ": " + why);
}

void StorageFile::fail_short(FileUse use, const FilePart& piece) const {
  fail(use, piece,
       use == FileUse::read ? "the file ends at " + std::to_string(size())
                            : "the rest of it was not written, and no reason was given");
}

}  // namespace waywiser
