#include <sys/uio.h>

#include <cerrno>
#include <vector>

#include "waywiser/base/error.hpp"
#include "waywiser/storage/blocks.hpp"
#include "waywiser/storage/shared_out.hpp"
#include "waywiser/storage/storage_mechanism.hpp"

namespace waywiser {
namespace {

void transfer_blocks(FileUse use, const StorageFile& file, const FilePart& piece, Mapping& bounce) {
  BlockTransfer rest(use, file, piece, bounce);
  for (;;) {
    const auto offset = static_cast<off_t>(rest.offset());
    const std::span<const iovec> memory = rest.memory();
    const int count = static_cast<int>(memory.size());
    const ssize_t moved = use == FileUse::read ? ::preadv(file.direct_descriptor(), memory.data(), count, offset)
                                               : ::pwritev(file.direct_descriptor(), memory.data(), count, offset);
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0) file.fail(use, piece, last_system_error());
    if (rest.moved(static_cast<Bytes>(moved), file)) return;
  }
}

class Direct final : public FileRoad {
 public:
  explicit Direct(const RoadShape& shape) : shape_(shape), bounces_(shape.count) {}

  std::vector<FilePart> pieces(FileUse use, const StorageFile& file, std::span<const FilePart> parts) const override {
    return direct_pieces(use, file, parts, shape_.chunk);
  }
  void move(FileUse use, const StorageFile& file, PieceQueue& pieces) override {
    share_out(pieces, shape_.count,
              [&](unsigned worker, const FilePart& piece) { transfer_blocks(use, file, piece, bounces_[worker]); });
  }
  void finish(FileUse use, const StorageFile& file, std::span<const FilePart> parts) override {
    if (use == FileUse::write) write_rest(file, parts);
  }

 private:
  RoadShape shape_;
  std::vector<Mapping> bounces_;  // of each thread
};

}  // namespace

StorageMechanism direct_mechanism() {
  return {"direct", "The device moves the bytes itself, past the page cache (O_DIRECT), for one or more threads.",
          [](const StorageFile& file, FileUse) { return file.why_not_direct(); },
          [](const Way& way) -> std::unique_ptr<FileRoad> {
            return std::make_unique<Direct>(road_shape(way, "threads", {Bytes{1} << 20, 4}));
          }};
}

}  // namespace waywiser
