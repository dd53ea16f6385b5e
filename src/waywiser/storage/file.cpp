#include "waywiser/storage/file.hpp"

#include <mutex>

#include "waywiser/base/error.hpp"
#include "waywiser/storage/file_ways.hpp"
#include "waywiser/storage/gpu_staging.hpp"
#include "waywiser/storage/pieces.hpp"
#include "waywiser/storage/replaced_file.hpp"

namespace waywiser {

struct File::State {
  State(StorageFile opened, std::optional<ReplacedFile> target, FileUse used, const FileOptions& options)
      : file(std::move(opened)), replaced(std::move(target)), use(used), ways(file, use, options.plan, options.way) {
    if (options.gpus) staging.emplace(options.gpus);
  }

  void move(std::span<const FilePart> parts, Bytes each) {
    std::vector<FilePart> of_hosts;
    FileRoad& road = ways.find(work(parts), each);
    for (const FilePart& part : parts) {
      if (part.memory.place.is_gpu())
        staging->run(road, use, file, part);
      else
        of_hosts.push_back(part);
    }
    road.run(use, file, of_hosts);
  }

  FileWork work(std::span<const FilePart> parts) const {
    if (use == FileUse::write) return FileWork::write;
    if (file.seems_cached(parts.front().offset, parts.front().memory.bytes)) return FileWork::read_cached;
    return parts.size() > 1 ? FileWork::read_many : FileWork::read;
  }

  StorageFile file;
  std::optional<ReplacedFile> replaced;
  FileUse use;
  bool broken = false;  // a write has failed
  std::mutex turn;
  FileWays ways;
  std::optional<GpuStaging> staging;
};

File::File(std::unique_ptr<State> state) : state_(std::move(state)) {}
File::File(File&&) noexcept = default;
File& File::operator=(File&&) noexcept = default;
File::~File() = default;

File File::open(const std::filesystem::path& path, const FileOptions& options) {
  return File(std::make_unique<State>(StorageFile::for_reading(path), std::nullopt, FileUse::read, options));
}

File File::replace(const std::filesystem::path& path, const FileOptions& options) {
  ReplacedFile target(path);
  StorageFile file = target.make();
  return File(std::make_unique<State>(std::move(file), std::move(target), FileUse::write, options));
}

File::State& File::open_state() const {
  if (!state_) throw Error(ErrorKind::invalid_input, "the file is closed");
  return *state_;
}

Bytes File::size() const { return open_state().file.size(); }

void File::read(Bytes offset, Region into) {
  const FilePart part{offset, into};
  read({&part, 1});
}

void File::write(Bytes offset, ConstRegion from) {
  const FilePart part{offset, {const_cast<std::byte*>(from.data), from.bytes, from.place}};
  write({&part, 1});
}

void File::read(std::span<const FilePart> parts) { run(false, parts); }
void File::write(std::span<const FilePart> parts) { run(true, parts); }

void File::run(bool writes, std::span<const FilePart> parts) {
  State& state = open_state();
  const std::lock_guard turn(state.turn);
  if (state.broken) throw Error(ErrorKind::io, state.file.path() + ": a write has failed before");
  if (writes != (state.use == FileUse::write))
    refuse_input(state.file.path(), writes ? "is open to be read, not to be written" : "is being written, not read");
  check_parts(parts);
  Bytes bytes = 0;
  for (const FilePart& each : parts) {
    if (each.memory.place.is_gpu() && !state.staging)
      refuse_input(state.file.path(), "is open without GPUs, and an array is in the memory of one");
    bytes += each.memory.bytes;
  }
  if (bytes == 0) return;
  state.broken = writes;  // until it is over
  state.move(parts, bytes / parts.size());
  state.broken = false;
}

void File::close() {
  if (!state_) return;
  const std::unique_ptr<State> state = std::move(state_);
  const std::lock_guard turn(state->turn);
  if (!state->replaced) return;
  if (state->broken) throw Error(ErrorKind::io, state->file.path() + ": a write has failed, and it stays as it was");
  state->replaced->commit(state->file);
}

void File::discard() noexcept { state_.reset(); }

std::string File::way(Bytes offset, Bytes bytes) const {
  State& state = open_state();
  const FilePart part{offset, {nullptr, bytes, host(0)}};
  return text(state.ways.way(state.work({&part, 1}), bytes));
}

bool File::drop_cache() const { return open_state().file.drop_cache(); }
void File::synchronize() const { open_state().file.synchronize(); }

}  // namespace waywiser
