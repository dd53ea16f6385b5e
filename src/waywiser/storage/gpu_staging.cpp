#include "waywiser/storage/gpu_staging.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

#include "waywiser/base/timeout.hpp"
#include "waywiser/policy/defaults.hpp"
#include "waywiser/storage/pieces.hpp"
#include "waywiser/storage/shared_out.hpp"

namespace waywiser {
namespace {

constexpr std::size_t depth = defaults::file_depth;
constexpr Bytes aligned_to = 4096;  // for direct access

Bytes aligned(Bytes bytes) { return (bytes + aligned_to - 1) / aligned_to * aligned_to; }

}  // namespace

void GpuStaging::Lane::settle() noexcept {
  if (!stream) return;
  try {
    stream->synchronize(Deadline::in(usual_timeout()));
  } catch (const std::exception&) {  // the call that enqueued the work throws
  }
}

void GpuStaging::prepare(Lane& lane, Place gpu, Bytes chunk) {
  if (!lane.buffers.empty() && lane.buffers.front().memory.region().bytes >= chunk) return;
  lane.settle();
  std::vector<Buffer> buffers;
  for (std::size_t i = 0; i < depth; ++i)
    buffers.push_back(
        {gpus_->allocate(gpus_->nearest_host(gpu.index), chunk, Allocation::pinned), gpus_->create_event(gpu)});
  if (!lane.stream) lane.stream = gpus_->open_stream(gpu);
  lane.buffers = std::move(buffers);
}

std::vector<GpuStaging::Load> GpuStaging::loads_of(std::span<const FilePart> parts, Bytes chunk, Bytes block) {
  std::vector<Load> loads(1);
  Bytes bytes = 0;
  for (const FilePart& piece : cut(parts, chunk, block)) {
    if (bytes + aligned(piece.memory.bytes) > chunk) {
      loads.emplace_back();
      bytes = 0;
    }
    bytes += aligned(piece.memory.bytes);
    loads.back().push_back(piece);
  }
  return loads;
}

void GpuStaging::run(std::span<const std::unique_ptr<FileRoad>> roads, FileUse use, const StorageFile& file,
                     std::span<const FilePart> parts, Bytes chunk) {
  std::map<Place, std::vector<FilePart>> of_gpus;
  for (const FilePart& each : parts) of_gpus[each.memory.place].push_back(each);
  chunk = aligned(std::max(chunk, file.block()));
  for (const auto& [gpu, its_own] : of_gpus) {
    const std::vector<Load> loads = loads_of(its_own, chunk, file.block());
    const std::size_t used = std::min(roads.size(), loads.size());
    std::deque<Lane>& lanes = lanes_[gpu];
    while (lanes.size() < used) lanes.emplace_back();
    for (std::size_t i = 0; i < used; ++i) prepare(lanes[i], gpu, chunk);
    Queue queue(loads);
    share_out(used, static_cast<unsigned>(used), [&](unsigned, std::size_t i) {
      try {
        (use == FileUse::read ? read : write)(lanes[i], *roads[i], file, queue);
      } catch (...) {
        queue.end();
        lanes[i].settle();
        throw;
      }
    });
  }
}

std::vector<FilePart> GpuStaging::staged(const Load& load, const Buffer& buffer) {
  std::vector<FilePart> parts;
  Bytes at = 0;
  for (const FilePart& each : load) {
    parts.push_back({each.offset, buffer.memory.region().slice(at, each.memory.bytes)});
    at += aligned(each.memory.bytes);
  }
  return parts;
}

void GpuStaging::read(Lane& lane, FileRoad& road, const StorageFile& file, Queue& loads) {
  std::size_t turn = 0;
  for (; const Load* load = loads.take(); ++turn) {
    Buffer& buffer = lane.buffers[turn % depth];
    if (turn >= depth) buffer.copied->synchronize(Deadline::in(usual_timeout()));
    const std::vector<FilePart> here = staged(*load, buffer);
    road.run(FileUse::read, file, here);
    for (std::size_t k = 0; k < here.size(); ++k) lane.stream->copy((*load)[k].memory, here[k].memory);
    lane.stream->record(*buffer.copied);
  }
  if (turn != 0) lane.stream->synchronize(Deadline::in(usual_timeout()));
}

void GpuStaging::write(Lane& lane, FileRoad& road, const StorageFile& file, Queue& loads) {
  std::array<std::vector<FilePart>, depth> fetched;
  std::size_t begun = 0;
  const auto fetch = [&] {
    const Load* load = loads.take();
    if (load == nullptr) return;
    Buffer& buffer = lane.buffers[begun % depth];
    std::vector<FilePart>& here = fetched[begun++ % depth] = staged(*load, buffer);
    for (std::size_t k = 0; k < here.size(); ++k) lane.stream->copy(here[k].memory, (*load)[k].memory);
    lane.stream->record(*buffer.copied);
  };
  for (std::size_t i = 0; i < depth; ++i) fetch();
  for (std::size_t i = 0; i < begun; ++i) {
    lane.buffers[i % depth].copied->synchronize(Deadline::in(usual_timeout()));
    road.run(FileUse::write, file, fetched[i % depth]);
    fetch();
  }
}

}  // namespace waywiser
