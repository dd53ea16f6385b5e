#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "waywiser/base/error.hpp"
#include "waywiser/device/mapping.hpp"
#include "waywiser/storage/pieces.hpp"
#include "waywiser/storage/shared_out.hpp"
#include "waywiser/storage/storage_mechanism.hpp"

namespace waywiser {
namespace {

// The pages of a file that hold one part.
class MappedPart {
 public:
  MappedPart(const StorageFile& file, const FilePart& part)
      : skip_(part.offset % page_size()), length_(skip_ + part.memory.bytes) {
    const auto begin = static_cast<off_t>(part.offset - skip_);
    at_ = ::mmap(nullptr, length_, PROT_READ, MAP_SHARED, file.cached_descriptor(), begin);
    if (at_ == MAP_FAILED) file.fail(FileUse::read, part, "cannot map it: " + last_system_error());
    ::madvise(at_, length_, MADV_WILLNEED);
  }
  MappedPart(const MappedPart&) = delete;
  MappedPart& operator=(const MappedPart&) = delete;
  ~MappedPart() { ::munmap(at_, length_); }

  std::byte* data() const { return static_cast<std::byte*>(at_) + skip_; }

 private:
  Bytes skip_, length_;
  void* at_;
};

// The kernel copies: it reports a page that cannot be read, which would end this process otherwise.
ssize_t copied(std::byte* from, const Region& into) {
  const iovec local{into.data, into.bytes}, remote{from, into.bytes};
  return ::process_vm_readv(::getpid(), &local, 1, &remote, 1, 0);
}

class Mapped final : public FileRoad {
 public:
  explicit Mapped(const RoadShape& shape) : shape_(shape) {}

  std::vector<FilePart> pieces(FileUse, const StorageFile&, std::span<const FilePart> parts) const override {
    return cut(parts, shape_.chunk, 1);
  }
  void move(FileUse, const StorageFile& file, PieceQueue& pieces) override {
    share_out(pieces, shape_.count, [&](unsigned, const FilePart& piece) { read(file, piece); });
  }

 private:
  static void read(const StorageFile& file, const FilePart& part) {
    // The last page that is mapped is whole, with zeros beyond the end.
    if (part.end() > file.size()) file.fail_short(FileUse::read, part);
    const MappedPart pages(file, part);
    for (Bytes done = 0; done < part.memory.bytes;) {
      const Bytes left = part.memory.bytes - done;
      const ssize_t moved = copied(pages.data() + done, part.memory.slice(done, left));
      if (moved > 0) {
        done += static_cast<Bytes>(moved);
        continue;
      }
      const FilePart rest{part.offset + done, part.memory.slice(done, left)};
      file.fail(FileUse::read, rest, errno == EFAULT ? "a page of it cannot be read" : last_system_error());
    }
    if (file.size() < part.end()) file.fail_short(FileUse::read, part);
  }

  RoadShape shape_;
};

std::optional<std::string> why_not_mapped(const StorageFile&, FileUse use) {
  if (use == FileUse::write) return "a page that cannot be written would end the process: files are mapped to be read";
  std::byte from{}, into{};
  if (copied(&from, {&into, 1, host(0)}) != 1) return "process_vm_readv: " + last_system_error();
  return {};
}

}  // namespace

StorageMechanism mapped_mechanism() {
  return {"mmap", "The file is mapped, and the kernel copies from its pages; only to read.", why_not_mapped,
          [](const Way& way) -> std::unique_ptr<FileRoad> {
            return std::make_unique<Mapped>(road_shape(way, "threads", {Bytes{4} << 20, 1}));
          }};
}

}  // namespace waywiser
