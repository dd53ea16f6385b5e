#include "waywiser/storage/gpu_staging.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

#include "waywiser/base/timeout.hpp"
#include "waywiser/policy/defaults.hpp"
#include "waywiser/storage/shared_out.hpp"

namespace waywiser {
namespace {

constexpr std::size_t depth = defaults::file_depth;
constexpr Bytes aligned_to = 4096;  // for direct access

Bytes aligned(Bytes bytes) { return (bytes + aligned_to - 1) / aligned_to * aligned_to; }

// The pieces that one buffer takes together, and where they are in it.
struct Load {
  Load() = default;
  Load(std::span<const FilePart> pieces, const GpuStaging::Buffer& buffer) : there(pieces) {
    Bytes at = 0;
    for (const FilePart& each : pieces) {
      here.push_back({each.offset, buffer.memory.region().slice(at, each.memory.bytes)});
      at += aligned(each.memory.bytes);
    }
  }
  std::span<const FilePart> there;
  std::vector<FilePart> here;
};

void read_by(GpuStaging::Lane& lane, FileRoad& road, const StorageFile& file, PieceQueue& pieces, Bytes chunk) {
  for (std::size_t turn = 0;; ++turn) {
    GpuStaging::Buffer& buffer = lane.buffers[turn % depth];
    if (turn >= depth) buffer.copied->synchronize(Deadline::in(usual_timeout()));
    const Load load(pieces.take_load(chunk, aligned_to), buffer);
    if (load.here.empty()) break;
    road.run(FileUse::read, file, load.here);
    for (std::size_t k = 0; k < load.here.size(); ++k) lane.stream->copy(load.there[k].memory, load.here[k].memory);
    lane.stream->record(*buffer.copied);
  }
  lane.stream->synchronize(Deadline::in(usual_timeout()));
}

void write_by(GpuStaging::Lane& lane, FileRoad& road, const StorageFile& file, PieceQueue& pieces, Bytes chunk) {
  std::array<Load, depth> loads;
  std::size_t begun = 0;
  const auto fetch = [&] {
    GpuStaging::Buffer& buffer = lane.buffers[begun % depth];
    Load load(pieces.take_load(chunk, aligned_to), buffer);
    if (load.here.empty()) return;
    for (std::size_t k = 0; k < load.here.size(); ++k) lane.stream->copy(load.here[k].memory, load.there[k].memory);
    lane.stream->record(*buffer.copied);
    loads[begun++ % depth] = std::move(load);
  };
  for (std::size_t i = 0; i < depth; ++i) fetch();
  for (std::size_t i = 0; i < begun; ++i) {
    lane.buffers[i % depth].copied->synchronize(Deadline::in(usual_timeout()));
    road.run(FileUse::write, file, loads[i % depth].here);
    fetch();
  }
}

}  // namespace

void GpuStaging::Lane::settle() noexcept {
  if (!stream) return;
  try {
    stream->synchronize(Deadline::in(usual_timeout()));
  } catch (const std::exception&) {  // the call that enqueued the work throws
  }
}

std::deque<GpuStaging::Lane>& GpuStaging::lanes(Place gpu, std::size_t count, Bytes chunk) {
  std::deque<Lane>& found = lanes_[gpu];
  while (found.size() < count) found.emplace_back();
  for (std::size_t lane = 0; lane < count; ++lane) {
    if (!found[lane].buffers.empty() && found[lane].buffers.front().memory.region().bytes >= chunk) continue;
    found[lane].settle();
    std::vector<Buffer> buffers;
    for (std::size_t i = 0; i < depth; ++i)
      buffers.push_back(
          {gpus_->allocate(gpus_->nearest_host(gpu.index), chunk, Allocation::pinned), gpus_->create_event(gpu)});
    if (!found[lane].stream) found[lane].stream = gpus_->open_stream(gpu);
    found[lane].buffers = std::move(buffers);
  }
  return found;
}

Bytes StagedRoad::buffer(const StorageFile& file) const { return aligned(std::max(chunk_, file.block())); }

std::vector<FilePart> StagedRoad::pieces(FileUse, const StorageFile& file, std::span<const FilePart> parts) const {
  return cut(parts, buffer(file), file.block());
}

void StagedRoad::move(FileUse use, const StorageFile& file, PieceQueue& pieces) {
  if (pieces.all().empty()) return;
  const Bytes chunk = buffer(file);
  Bytes bytes = 0;
  for (const FilePart& each : pieces.all()) bytes += aligned(each.memory.bytes);
  const std::size_t used = std::min<std::size_t>(roads_.size(), (bytes + chunk - 1) / chunk);
  std::deque<GpuStaging::Lane>& lanes = staging_.lanes(pieces.all().front().memory.place, used, chunk);
  share_out(used, static_cast<unsigned>(used), [&](unsigned, std::size_t i) {
    try {
      (use == FileUse::read ? read_by : write_by)(lanes[i], *roads_[i], file, pieces, chunk);
    } catch (...) {
      pieces.withdraw();
      lanes[i].settle();
      throw;
    }
  });
}

}  // namespace waywiser
