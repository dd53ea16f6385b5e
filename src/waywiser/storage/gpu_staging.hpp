#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "waywiser/device/platform.hpp"
#include "waywiser/storage/storage_mechanism.hpp"

namespace waywiser {

// Parts whose memory is a GPU's go through pinned host memory, in one or more lanes: each is a thread with a road, a
// stream and buffers of its own. While it reads a file into one buffer, the copies from its others are under way. One
// call at a time.
class GpuStaging {
 public:
  explicit GpuStaging(std::shared_ptr<Platform> gpus) : gpus_(std::move(gpus)) {}

  // As FileRoad::run; also throws device and timeout. A lane for each road, as far as there is work for it. Buffers of
  // `chunk` bytes, of which small parts share one.
  void run(std::span<const std::unique_ptr<FileRoad>> roads, FileUse use, const StorageFile& file,
           std::span<const FilePart> parts, Bytes chunk);

 private:
  struct Buffer {
    Memory memory;
    std::unique_ptr<Event> copied;
  };
  using Load = std::vector<FilePart>;  // pieces of parts, which one buffer takes together
  // Loads, each for the lane that asks first.
  class Queue {
   public:
    explicit Queue(const std::vector<Load>& loads) : loads_(loads) {}
    const Load* take() noexcept {  // nullptr: no more
      const std::size_t next = next_++;
      return next < loads_.size() ? &loads_[next] : nullptr;
    }
    void end() noexcept { next_ = loads_.size(); }

   private:
    const std::vector<Load>& loads_;
    std::atomic<std::size_t> next_{0};
  };
  // Work ends before its memory goes.
  struct Lane {
    Lane() = default;
    Lane(const Lane&) = delete;
    Lane& operator=(const Lane&) = delete;
    ~Lane() { settle(); }
    void settle() noexcept;  // waits for all copies, whatever becomes of them
    std::vector<Buffer> buffers;
    std::unique_ptr<Stream> stream;
  };
  void prepare(Lane& lane, Place gpu, Bytes chunk);
  static std::vector<Load> loads_of(std::span<const FilePart> parts, Bytes chunk, Bytes block);
  static std::vector<FilePart> staged(const Load& load, const Buffer& buffer);  // the same in the buffer
  static void read(Lane& lane, FileRoad& road, const StorageFile& file, Queue& loads);
  static void write(Lane& lane, FileRoad& road, const StorageFile& file, Queue& loads);

  std::shared_ptr<Platform> gpus_;
  std::map<Place, std::deque<Lane>> lanes_;
};

}  // namespace waywiser
