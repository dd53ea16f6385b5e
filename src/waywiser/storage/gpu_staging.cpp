#include "waywiser/storage/gpu_staging.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "waywiser/base/timeout.hpp"
#include "waywiser/policy/defaults.hpp"
#include "waywiser/storage/pieces.hpp"

namespace waywiser {
namespace {

constexpr Bytes chunk = defaults::file_chunk;
constexpr std::size_t depth = defaults::file_depth;

}  // namespace

void GpuStaging::Lane::settle() noexcept {
  if (!stream) return;
  try {
    stream->synchronize(Deadline::in(usual_timeout()));
  } catch (const std::exception&) {  // the call that enqueued the work throws
  }
}

GpuStaging::Lane& GpuStaging::lane(Place gpu) {
  Lane& found = lanes_[gpu];
  if (!found.buffers.empty()) return found;
  std::vector<Buffer> buffers;
  for (std::size_t i = 0; i < depth; ++i)
    buffers.push_back(
        {gpus_->allocate(gpus_->nearest_host(gpu.index), chunk, Allocation::pinned), gpus_->create_event(gpu)});
  found.stream = gpus_->open_stream(gpu);
  found.buffers = std::move(buffers);
  return found;
}

void GpuStaging::run(FileRoad& road, FileUse use, const StorageFile& file, const FilePart& part) {
  const std::vector<FilePart> pieces = cut({&part, 1}, chunk, file.block());
  Lane& of_gpu = lane(part.memory.place);
  try {
    if (use == FileUse::read)
      read(of_gpu, road, file, pieces);
    else
      write(of_gpu, road, file, pieces);
  } catch (...) {
    of_gpu.settle();
    throw;
  }
}

void GpuStaging::read(Lane& of_gpu, FileRoad& road, const StorageFile& file, const std::vector<FilePart>& pieces) {
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    Buffer& buffer = of_gpu.buffers[i % depth];
    if (i >= depth) buffer.copied->synchronize(Deadline::in(usual_timeout()));
    const FilePart staged{pieces[i].offset, buffer.memory.region().slice(0, pieces[i].memory.bytes)};
    road.run(FileUse::read, file, {&staged, 1});
    of_gpu.stream->copy(pieces[i].memory, staged.memory);
    of_gpu.stream->record(*buffer.copied);
  }
  of_gpu.stream->synchronize(Deadline::in(usual_timeout()));
}

void GpuStaging::write(Lane& of_gpu, FileRoad& road, const StorageFile& file, const std::vector<FilePart>& pieces) {
  const auto fetch = [&](std::size_t i) {
    Buffer& buffer = of_gpu.buffers[i % depth];
    of_gpu.stream->copy(buffer.memory.region().slice(0, pieces[i].memory.bytes), pieces[i].memory);
    of_gpu.stream->record(*buffer.copied);
  };
  for (std::size_t i = 0; i < std::min(depth, pieces.size()); ++i) fetch(i);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    Buffer& buffer = of_gpu.buffers[i % depth];
    buffer.copied->synchronize(Deadline::in(usual_timeout()));
    const FilePart staged{pieces[i].offset, buffer.memory.region().slice(0, pieces[i].memory.bytes)};
    road.run(FileUse::write, file, {&staged, 1});
    if (const std::size_t next = i + depth; next < pieces.size()) fetch(next);
  }
  of_gpu.stream->synchronize(Deadline::in(usual_timeout()));
}

}  // namespace waywiser
