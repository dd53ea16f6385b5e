#include "waywiser/storage/file.hpp"

#include <mutex>
#include <optional>

#include "waywiser/base/error.hpp"
#include "waywiser/storage/file_moves.hpp"
#include "waywiser/storage/pieces.hpp"
#include "waywiser/storage/replaced_file.hpp"
#include "waywiser/storage/turns.hpp"

namespace waywiser {

struct [[gnu::visibility("hidden")]] File::Opened {
  Opened(StorageFile opened, std::optional<ReplacedFile> target, FileUse used, const FileOptions& options)
      : file(std::move(opened)), replaced(std::move(target)), use(used), moves(file, use, options.plan, options.way) {
    if (options.gpus) moves.use_gpus(options.gpus);
  }

  void run(bool writes, std::span<const FilePart> parts);

  StorageFile file;
  std::optional<ReplacedFile> replaced;
  FileUse use;
  bool broken = false;  // a write has failed
  FileMoves moves;
};

// It stays until the File ends: a call of another thread may wait for its turn.
struct [[gnu::visibility("hidden")]] File::State {
  Opened& open() {
    if (!opened) throw Error(ErrorKind::invalid_input, "the file is closed");
    return *opened;
  }

  Turns turn;
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
  in_turn([&](Opened& opened) { opened.moves.use_gpus(std::move(gpus)); });
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
    if (each.memory.place.is_gpu() && !moves.has_gpus())
      refuse_input(file.path(), "is open without GPUs, and an array is in the memory of one");
    bytes += each.memory.bytes;
  }
  if (bytes == 0) return;
  broken = writes;  // until it is over
  moves.move(parts);
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
  return in_turn([&](Opened& opened) { return text(opened.moves.way(part)); });
}

bool File::drop_cache() const {
  return in_turn([](const Opened& opened) { return opened.file.drop_cache(); });
}

void File::synchronize() const {
  in_turn([](const Opened& opened) { opened.file.synchronize(); });
}

}  // namespace waywiser
