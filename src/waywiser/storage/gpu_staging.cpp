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

// Pieces that one buffer takes together, in the buffer.
std::vector<FilePart> staged(std::span<const FilePart> pieces, const GpuStaging::Buffer& buffer) {
  std::vector<FilePart> here;
  Bytes at = 0;
  for (const FilePart& each : pieces) {
    here.push_back({each.offset, buffer.memory.region().slice(at, each.memory.bytes)});
    at += aligned(each.memory.bytes);
  }
  return here;
}

}  // namespace

void GpuStaging::Lane::settle() noexcept {
  if (!stream) return;
  try {
    stream->synchronize(Deadline::in(usual_timeout()));
  } catch (const std::exception&) {  // the call that enqueued the work throws
  }
}

std::deque<GpuStaging::Lane>& GpuStaging::lanes(Place gpu, std::size_t count) {
  std::deque<Lane>& found = lanes_[gpu];
  while (found.size() < count) {
    found.emplace_back();
    found.back().stream = gpus_->open_stream(gpu);
  }
  return found;
}

GpuStaging::Buffer& GpuStaging::buffer(Lane& lane, std::size_t turn, Bytes bytes) const {
  const Place gpu = lane.stream->place();
  if (lane.buffers.size() <= turn % depth) lane.buffers.emplace_back();
  Buffer& found = lane.buffers[turn % depth];
  if (found.in_use) found.copied->synchronize(Deadline::in(usual_timeout()));
  found.in_use = false;
  if (found.memory.region().bytes < bytes)
    found.memory = gpus_->allocate(gpus_->nearest_host(gpu.index), bytes, Allocation::pinned);
  if (!found.copied) found.copied = gpus_->create_event(gpu);
  return found;
}

Bytes StagedRoad::most_of_a_load(const StorageFile& file) const { return aligned(std::max(chunk_, file.block())); }

std::vector<FilePart> StagedRoad::pieces(FileUse, const StorageFile& file, std::span<const FilePart> parts) const {
  return cut(parts, most_of_a_load(file), file.block());
}

void StagedRoad::read(GpuStaging::Lane& lane, FileRoad& road, const StorageFile& file, PieceQueue& pieces,
                      Bytes chunk) const {
  for (std::size_t turn = 0;; ++turn) {
    const std::span<const FilePart> there = pieces.take_load(chunk, aligned_to);
    if (there.empty()) break;
    GpuStaging::Buffer& buffer = staging_.buffer(lane, turn, chunk);
    const std::vector<FilePart> here = staged(there, buffer);
    road.run(FileUse::read, file, joined(here));  // a tail goes with its blocks
    for (std::size_t k = 0; k < here.size(); ++k) lane.stream->copy(there[k].memory, here[k].memory);
    lane.stream->record(*buffer.copied);
    buffer.in_use = true;
  }
  lane.stream->synchronize(Deadline::in(usual_timeout()));
}

void StagedRoad::write(GpuStaging::Lane& lane, FileRoad& road, const StorageFile& file, PieceQueue& pieces,
                       Bytes chunk) const {
  std::array<std::vector<FilePart>, depth> loads;
  std::size_t begun = 0;
  const auto fetch = [&] {
    const std::span<const FilePart> there = pieces.take_load(chunk, aligned_to);
    if (there.empty()) return;
    GpuStaging::Buffer& buffer = staging_.buffer(lane, begun, chunk);
    std::vector<FilePart>& here = loads[begun++ % depth] = staged(there, buffer);
    for (std::size_t k = 0; k < here.size(); ++k) lane.stream->copy(here[k].memory, there[k].memory);
    lane.stream->record(*buffer.copied);
    buffer.in_use = true;
  };
  for (std::size_t i = 0; i < depth; ++i) fetch();
  for (std::size_t i = 0; i < begun; ++i) {
    lane.buffers[i % depth].copied->synchronize(Deadline::in(usual_timeout()));
    road.run(FileUse::write, file, joined(loads[i % depth]));
    fetch();
  }
}

void StagedRoad::move(FileUse use, const StorageFile& file, PieceQueue& pieces) {
  Bytes bytes = 0;
  for (const FilePart& each : pieces.all()) bytes += aligned(each.memory.bytes);
  if (bytes == 0) return;
  const Bytes chunk = std::min(most_of_a_load(file), bytes);
  const std::size_t used = std::min<std::size_t>(roads_.size(), (bytes + chunk - 1) / chunk);
  std::deque<GpuStaging::Lane>& lanes = staging_.lanes(pieces.all().front().memory.place, used);
  share_out(used, static_cast<unsigned>(used), [&](unsigned, std::size_t i) {
    try {
      if (use == FileUse::read)
        read(lanes[i], *roads_[i], file, pieces, chunk);
      else
        write(lanes[i], *roads_[i], file, pieces, chunk);
    } catch (...) {
      pieces.withdraw();
      lanes[i].settle();
      throw;
    }
  });
}

}  // namespace waywiser
