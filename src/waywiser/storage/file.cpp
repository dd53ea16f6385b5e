#include "waywiser/storage/file.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <mutex>

#include "waywiser/base/error.hpp"
#include "waywiser/policy/defaults.hpp"
#include "waywiser/storage/file_ways.hpp"
#include "waywiser/storage/gpu_staging.hpp"
#include "waywiser/storage/pieces.hpp"
#include "waywiser/storage/replaced_file.hpp"

namespace waywiser {

struct [[gnu::visibility("hidden")]] File::Opened {
  Opened(StorageFile opened, std::optional<ReplacedFile> target, FileUse used, const FileOptions& options)
      : file(std::move(opened)), replaced(std::move(target)), use(used), ways(file, use, options.plan, options.way) {
    if (options.gpus) staging.emplace(options.gpus);
  }

  void run(bool writes, std::span<const FilePart> parts);
  // A long part in sections: its way may become slow meanwhile. `each`: bytes of a part.
  void move(std::span<const FilePart> parts, Bytes each) {
    if (parts.size() > 1) return move_at_once(parts, each);
    const FilePart& all = parts.front();
    for (Bytes at = 0; at < each; at += defaults::file_section) {
      const FilePart section{all.offset + at, all.memory.slice(at, std::min<Bytes>(defaults::file_section, each - at))};
      move_at_once({&section, 1}, each);
    }
  }

  void move_at_once(std::span<const FilePart> parts, Bytes each) {
    std::vector<FilePart> of_hosts, of_gpus;
    for (const FilePart& part : parts) (part.memory.place.is_gpu() ? of_gpus : of_hosts).push_back(part);
    const FileWork now = work(parts);
    if (!of_hosts.empty()) move(of_hosts, FileEnd::host, now, each);
    if (!of_gpus.empty()) move(of_gpus, FileEnd::gpu, now, each);
  }

  void move(std::span<const FilePart> parts, FileEnd end, FileWork now, Bytes each) {
    const FileWays::Found found = ways.find(now, end, each);
    const auto begun = std::chrono::steady_clock::now();
    if (found.end == end)
      found.roads.front()->run(use, file, parts);
    else
      staging->run(found.roads, use, file, parts, found.bounce);
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begun;
    if (found.times_of == end) look_at(found.ways, now, parts, spent.count());
  }

  // Calls of one part are timed, and those of so many that each takes the time of the plan's.
  void look_at(WatchedWays& watched, FileWork now, std::span<const FilePart> parts, Seconds spent) {
    if (parts.size() > 1 && parts.size() < defaults::file_many) return;
    Bytes bytes = 0;
    for (const FilePart& part : parts) bytes += part.memory.bytes;
    const WatchedWays::Slow slow = watched.took(bytes / parts.size(), spent, parts.size());
    if (slow.way != nullptr)
      std::fprintf(stderr, "waywiser: %s: %s by %s takes %.1f times the time of the plan; by %s from now on\n",
                   file.path().c_str(), std::string(name(now)).c_str(), text(*slow.way).c_str(), slow.times,
                   text(watched.way()).c_str());
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
  FileWays ways;
  std::optional<GpuStaging> staging;
};

// It stays until the File ends: a call of another thread may wait for its turn.
struct [[gnu::visibility("hidden")]] File::State {
  Opened& open() {
    if (!opened) throw Error(ErrorKind::invalid_input, "the file is closed");
    return *opened;
  }

  std::mutex turn;
  std::unique_ptr<Opened> opened;
};

File::File(std::unique_ptr<Opened> opened) : state_(std::make_unique<State>()) { state_->opened = std::move(opened); }
File::File(File&&) noexcept = default;
File& File::operator=(File&&) noexcept = default;
File::~File() = default;

File File::open(const std::filesystem::path& path, const FileOptions& options) {
  return File(std::make_unique<Opened>(StorageFile::for_reading(path), std::nullopt, FileUse::read, options));
}

File File::replace(const std::filesystem::path& path, const FileOptions& options) {
  ReplacedFile target(path);
  StorageFile file = target.make();
  return File(std::make_unique<Opened>(std::move(file), std::move(target), FileUse::write, options));
}

template <typename Call>
auto File::in_turn(Call call) const {
  if (!state_) throw Error(ErrorKind::invalid_input, "the file is closed");
  const std::lock_guard turn(state_->turn);
  return call(state_->open());
}

void File::use_gpus(std::shared_ptr<Platform> gpus) {
  in_turn([&](Opened& opened) { opened.staging.emplace(std::move(gpus)); });
}

Bytes File::size() const {
  return in_turn([](const Opened& opened) { return opened.file.size(); });
}

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
  in_turn([&](Opened& opened) { opened.run(writes, parts); });
}

void File::Opened::run(bool writes, std::span<const FilePart> parts) {
  if (broken) throw Error(ErrorKind::io, file.path() + ": a write has failed before");
  if (writes != (use == FileUse::write))
    refuse_input(file.path(), writes ? "is open to be read, not to be written" : "is being written, not read");
  check_parts(parts);
  Bytes bytes = 0;
  for (const FilePart& each : parts) {
    if (each.memory.place.is_gpu() && !staging)
      refuse_input(file.path(), "is open without GPUs, and an array is in the memory of one");
    bytes += each.memory.bytes;
  }
  if (bytes == 0) return;
  broken = writes;  // until it is over
  move(parts, bytes / parts.size());
  broken = false;
}

void File::close() {
  const std::unique_ptr<Opened> opened = taken();
  if (!opened || !opened->replaced) return;
  if (opened->broken) throw Error(ErrorKind::io, opened->file.path() + ": a write has failed, and it stays as it was");
  opened->replaced->commit(opened->file);
}

void File::discard() noexcept { taken(); }

std::unique_ptr<File::Opened> File::taken() noexcept {
  if (!state_) return {};
  const std::lock_guard turn(state_->turn);
  return std::move(state_->opened);
}

std::string File::way(Bytes offset, Bytes bytes, Place place) const {
  const FilePart part{offset, {nullptr, bytes, place}};
  const FileEnd end = place.is_gpu() ? FileEnd::gpu : FileEnd::host;
  return in_turn([&](Opened& opened) { return text(opened.ways.way(opened.work({&part, 1}), end, bytes)); });
}

bool File::drop_cache() const {
  return in_turn([](const Opened& opened) { return opened.file.drop_cache(); });
}

void File::synchronize() const {
  in_turn([](const Opened& opened) { opened.file.synchronize(); });
}

}  // namespace waywiser
