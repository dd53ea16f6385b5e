#include "waywiser/storage/pieces.hpp"
#include "waywiser/storage/shared_out.hpp"
#include "waywiser/storage/storage_mechanism.hpp"

namespace waywiser {
namespace {

class Buffered final : public FileRoad {
 public:
  explicit Buffered(const RoadShape& shape) : shape_(shape) {}

  std::vector<FilePart> pieces(FileUse, const StorageFile&, std::span<const FilePart> parts) const override {
    return cut(parts, shape_.chunk, 1);
  }
  void move(FileUse use, const StorageFile& file, PieceQueue& pieces) override {
    share_out(pieces, shape_.count,
              [&](unsigned, const FilePart& piece) { file.transfer(use, file.cached_descriptor(), piece); });
  }

 private:
  RoadShape shape_;
};

}  // namespace

StorageMechanism buffered_mechanism() {
  return {"buffered", "The kernel copies between its page cache and the memory, for one or more threads.",
          [](const StorageFile&, FileUse) { return std::optional<std::string>(); },
          [](const Way& way) -> std::unique_ptr<FileRoad> {
            return std::make_unique<Buffered>(road_shape(way, "threads", {Bytes{1} << 20, 1}));
          }};
}

}  // namespace waywiser
