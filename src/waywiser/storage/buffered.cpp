#include "waywiser/storage/pieces.hpp"
#include "waywiser/storage/shared_out.hpp"
#include "waywiser/storage/storage_mechanism.hpp"

namespace waywiser {
namespace {

class Buffered final : public FileRoad {
 public:
  explicit Buffered(const RoadShape& shape) : shape_(shape) {}

  void run(FileUse use, const StorageFile& file, std::span<const FilePart> parts) override {
    const std::vector<FilePart> pieces = cut(parts, shape_.chunk, 1);
    share_out(pieces.size(), shape_.count,
              [&](unsigned, std::size_t i) { file.transfer(use, file.cached_descriptor(), pieces[i]); });
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
