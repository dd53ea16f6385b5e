#include "waywiser/storage/gpu_staging.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "waywiser/base/timeout.hpp"
#include "waywiser/policy/defaults.hpp"
#include "waywiser/storage/pieces.hpp"

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

GpuStaging::Lane& GpuStaging::lane(Place gpu, Bytes chunk) {
  Lane& found = lanes_[gpu];
  if (!found.buffers.empty() && found.buffers.front().memory.region().bytes >= chunk) return found;
  found.settle();
  std::vector<Buffer> buffers;
  for (std::size_t i = 0; i < depth; ++i)
    buffers.push_back(
        {gpus_->allocate(gpus_->nearest_host(gpu.index), chunk, Allocation::pinned), gpus_->create_event(gpu)});
  if (!found.stream) found.stream = gpus_->open_stream(gpu);
  found.buffers = std::move(buffers);
  return found;
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

void GpuStaging::run(FileRoad& road, FileUse use, const StorageFile& file, std::span<const FilePart> parts,
                     Bytes chunk) {
  std::map<Place, std::vector<FilePart>> of_gpus;
  for (const FilePart& each : parts) of_gpus[each.memory.place].push_back(each);
  chunk = aligned(std::max(chunk, file.block()));
  for (const auto& [gpu, its_own] : of_gpus) {
    Lane& of_gpu = lane(gpu, chunk);
    const std::vector<Load> loads = loads_of(its_own, chunk, file.block());
    try {
      if (use == FileUse::read)
        read(of_gpu, road, file, loads);
      else
        write(of_gpu, road, file, loads);
    } catch (...) {
      of_gpu.settle();
      throw;
    }
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

void GpuStaging::read(Lane& of_gpu, FileRoad& road, const StorageFile& file, const std::vector<Load>& loads) {
  for (std::size_t i = 0; i < loads.size(); ++i) {
    Buffer& buffer = of_gpu.buffers[i % depth];
    if (i >= depth) buffer.copied->synchronize(Deadline::in(usual_timeout()));
    const std::vector<FilePart> here = staged(loads[i], buffer);
    road.run(FileUse::read, file, here);
    for (std::size_t k = 0; k < here.size(); ++k) of_gpu.stream->copy(loads[i][k].memory, here[k].memory);
    of_gpu.stream->record(*buffer.copied);
  }
  of_gpu.stream->synchronize(Deadline::in(usual_timeout()));
}

void GpuStaging::write(Lane& of_gpu, FileRoad& road, const StorageFile& file, const std::vector<Load>& loads) {
  const auto fetch = [&](std::size_t i) {
    Buffer& buffer = of_gpu.buffers[i % depth];
    const std::vector<FilePart> here = staged(loads[i], buffer);
    for (std::size_t k = 0; k < here.size(); ++k) of_gpu.stream->copy(here[k].memory, loads[i][k].memory);
    of_gpu.stream->record(*buffer.copied);
  };
  for (std::size_t i = 0; i < std::min(depth, loads.size()); ++i) fetch(i);
  for (std::size_t i = 0; i < loads.size(); ++i) {
    Buffer& buffer = of_gpu.buffers[i % depth];
    buffer.copied->synchronize(Deadline::in(usual_timeout()));
    road.run(FileUse::write, file, staged(loads[i], buffer));
    if (const std::size_t next = i + depth; next < loads.size()) fetch(next);
  }
  of_gpu.stream->synchronize(Deadline::in(usual_timeout()));
}

}  // namespace waywiser
