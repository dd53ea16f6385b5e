#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "waywiser/device/platform.hpp"
#include "waywiser/storage/storage_mechanism.hpp"

namespace waywiser {

// Parts whose memory is a GPU's go through pinned host memory: while a file is read into one buffer, the copies from
// the others are under way. One call at a time.
class GpuStaging {
 public:
  explicit GpuStaging(std::shared_ptr<Platform> gpus) : gpus_(std::move(gpus)) {}

  // As FileRoad::run; also throws device and timeout. Buffers of `chunk` bytes, of which small parts share one.
  void run(FileRoad& road, FileUse use, const StorageFile& file, std::span<const FilePart> parts, Bytes chunk);

 private:
  struct Buffer {
    Memory memory;
    std::unique_ptr<Event> copied;
  };
  using Load = std::vector<FilePart>;  // pieces of parts, which one buffer takes together
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
  Lane& lane(Place gpu, Bytes chunk);
  static std::vector<Load> loads_of(std::span<const FilePart> parts, Bytes chunk, Bytes block);
  static std::vector<FilePart> staged(const Load& load, const Buffer& buffer);  // the same in the buffer
  void read(Lane& lane, FileRoad& road, const StorageFile& file, const std::vector<Load>& loads);
  void write(Lane& lane, FileRoad& road, const StorageFile& file, const std::vector<Load>& loads);

  std::shared_ptr<Platform> gpus_;
  std::map<Place, Lane> lanes_;
};

}  // namespace waywiser
