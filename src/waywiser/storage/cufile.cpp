#include <algorithm>
#include <map>
#include <vector>

#include "waywiser/base/error.hpp"
#include "waywiser/device/current_gpu.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/storage/cufile_library.hpp"
#include "waywiser/storage/pieces.hpp"
#include "waywiser/storage/shared_out.hpp"
#include "waywiser/storage/storage_mechanism.hpp"

namespace waywiser {
namespace {

// A file as cuFile knows it, past the page cache where the file system allows that.
class AttachedFile {
 public:
  AttachedFile(const CuFileLibrary& library, const StorageFile& file)
      : library_(library),
        handle_(
            library.attach(file.why_not_direct() ? file.cached_descriptor() : file.direct_descriptor(), file.path())) {}
  AttachedFile(const AttachedFile&) = delete;
  AttachedFile& operator=(const AttachedFile&) = delete;
  ~AttachedFile() { library_.detach(handle_); }

  void move(FileUse use, const StorageFile& file, const FilePart& piece) const {
    const std::shared_ptr<void> current =
        on_cuda_ ? make_gpu_current(cuda_ordinal_of(piece.memory.place.index)) : nullptr;
    for (Bytes done = 0; done < piece.memory.bytes;) {
      std::byte* at = piece.memory.data + done;
      const Bytes left = piece.memory.bytes - done, offset = piece.offset + done;
      Bytes moved = 0;
      try {
        moved =
            use == FileUse::read ? library_.read(handle_, at, left, offset) : library_.write(handle_, at, left, offset);
      } catch (const Error& error) {
        file.fail(use, piece, error.what());
      }
      if (moved == 0) file.fail_short(use, piece);
      done += moved;
    }
  }

 private:
  const CuFileLibrary& library_;
  void* handle_;
  const bool on_cuda_ = !why_no_cuda();  // not where a test's library stands for cuFile
};

class CuFile final : public FileRoad {
 public:
  explicit CuFile(const RoadShape& shape) : shape_(shape) {}

  std::vector<FilePart> pieces(FileUse, const StorageFile& file, std::span<const FilePart> parts) const override {
    return cut(parts, shape_.chunk, std::max<Bytes>(file.block(), 4096));
  }
  void move(FileUse use, const StorageFile& file, PieceQueue& pieces) override {
    if (pieces.all().empty()) return;
    if (!attached_) attached_.emplace(CuFileLibrary::usual(), file);
    share_out(pieces, shape_.count, [&](unsigned, const FilePart& piece) { attached_->move(use, file, piece); });
  }

 private:
  RoadShape shape_;
  std::optional<AttachedFile> attached_;  // a road is of one file
};

}  // namespace

StorageMechanism cufile_mechanism() {
  return {"cufile", "NVIDIA's cuFile moves the bytes between the device and GPU memory.",
          [](const StorageFile& file, FileUse) -> std::optional<std::string> {
            const CuFileLibrary& library = CuFileLibrary::usual();
            if (library.why_not()) return library.why_not();
            try {
              AttachedFile(library, file);
            } catch (const Error& error) {
              return error.what();
            }
            return {};
          },
          [](const Way& way) -> std::unique_ptr<FileRoad> {
            return std::make_unique<CuFile>(road_shape(way, "threads", {Bytes{16} << 20, 4}));
          },
          FileEnd::gpu};
}

}  // namespace waywiser
