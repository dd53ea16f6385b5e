#pragma once

#include <map>
#include <memory>
#include <vector>

#include "waywiser/device/platform.hpp"
#include "waywiser/storage/storage_mechanism.hpp"

namespace waywiser {

// Parts whose memory is a GPU's go through pinned host memory: while a file is read into one buffer, the copies from
// the others are under way. One call at a time.
class GpuStaging {
 public:
  explicit GpuStaging(std::shared_ptr<Platform> gpus) : gpus_(std::move(gpus)) {}

  // As FileRoad::run; also throws device and timeout.
  void run(FileRoad& road, FileUse use, const StorageFile& file, const FilePart& part);

 private:
  struct Buffer {
    Memory memory;
    std::unique_ptr<Event> copied;
  };
  // What serves one GPU. Work ends before its memory goes.
  struct Lane {
    Lane() = default;
    Lane(const Lane&) = delete;
    Lane& operator=(const Lane&) = delete;
    ~Lane() { settle(); }
    void settle() noexcept;  // waits for all copies, whatever becomes of them
    std::vector<Buffer> buffers;
    std::unique_ptr<Stream> stream;
  };
  Lane& lane(Place gpu);
  void read(Lane& lane, FileRoad& road, const StorageFile& file, const std::vector<FilePart>& pieces);
  void write(Lane& lane, FileRoad& road, const StorageFile& file, const std::vector<FilePart>& pieces);

  std::shared_ptr<Platform> gpus_;
  std::map<Place, Lane> lanes_;
};

}  // namespace waywiser
