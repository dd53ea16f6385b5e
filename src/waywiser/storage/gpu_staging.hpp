#pragma once

#include <deque>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "waywiser/device/platform.hpp"
#include "waywiser/storage/storage_mechanism.hpp"

namespace waywiser {

// The pinned host memory through which parts in GPU memory go, for one call at a time.
class GpuStaging {
 public:
  explicit GpuStaging(std::shared_ptr<Platform> gpus) : gpus_(std::move(gpus)) {}

  struct Buffer {
    Memory memory;
    std::unique_ptr<Event> copied;
    bool in_use = false;  // until `copied`
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
  // So many, each with a stream of this GPU.
  std::deque<Lane>& lanes(Place gpu, std::size_t count);
  // The lane's buffer of this turn, of `bytes` at least, when its last copy is over.
  Buffer& buffer(Lane& lane, std::size_t turn, Bytes bytes) const;
  const std::shared_ptr<Platform>& gpus() const noexcept { return gpus_; }

 private:
  std::shared_ptr<Platform> gpus_;
  std::map<Place, std::deque<Lane>> lanes_;
};

// The road of parts in the memory of one GPU, by roads to host memory: each is a lane, with a thread as far as there is
// work for it, and buffers of `chunk` bytes, of which small parts share one. While a lane reads the file into one
// buffer, the copies from its others are under way. Also throws device and timeout.
class StagedRoad final : public FileRoad {
 public:
  StagedRoad(GpuStaging& staging, std::span<const std::unique_ptr<FileRoad>> roads, Bytes chunk)
      : staging_(staging), roads_(roads), chunk_(chunk) {}

  std::vector<FilePart> pieces(FileUse use, const StorageFile& file, std::span<const FilePart> parts) const override;
  void move(FileUse use, const StorageFile& file, PieceQueue& pieces) override;

 private:
  Bytes most_of_a_load(const StorageFile& file) const;
  void read(GpuStaging::Lane& lane, FileRoad& road, const StorageFile& file, PieceQueue& pieces, Bytes chunk) const;
  void write(GpuStaging::Lane& lane, FileRoad& road, const StorageFile& file, PieceQueue& pieces, Bytes chunk) const;

  GpuStaging& staging_;
  std::span<const std::unique_ptr<FileRoad>> roads_;
  Bytes chunk_;
};

}  // namespace waywiser
