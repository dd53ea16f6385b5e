#include "waywiser/storage/file_moves.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>

#include "waywiser/storage/alarm.hpp"

namespace waywiser {
namespace {

using Clock = std::chrono::steady_clock;

Seconds since(Clock::time_point begun) { return std::chrono::duration<double>(Clock::now() - begun).count(); }

Bytes each_of(std::span<const FilePart> parts) {
  Bytes bytes = 0;
  for (const FilePart& part : parts) bytes += part.memory.bytes;
  return bytes / parts.size();
}

}  // namespace

FileWork FileMoves::work(std::span<const FilePart> parts) const {
  if (use_ == FileUse::write) return FileWork::write;
  if (file_.seems_cached(parts.front().offset, parts.front().memory.bytes)) return FileWork::read_cached;
  return parts.size() > 1 ? FileWork::read_many : FileWork::read;
}

const Way& FileMoves::way(const FilePart& part) {
  return ways_.way(work({&part, 1}), part.memory.place.is_gpu() ? FileEnd::gpu : FileEnd::host, part.memory.bytes);
}

void FileMoves::move(std::span<const FilePart> parts) {
  const Bytes each = each_of(parts);
  std::vector<FilePart> of_hosts;
  std::map<Place, std::vector<FilePart>> of_gpus;
  for (const FilePart& part : parts)
    (part.memory.place.is_gpu() ? of_gpus[part.memory.place] : of_hosts).push_back(part);
  if (!of_hosts.empty()) move_to(FileEnd::host, of_hosts, each);
  for (const auto& [gpu, its_own] : of_gpus) move_to(FileEnd::gpu, its_own, each);
}

// What is long goes in sections, and each is judged.
void FileMoves::move_to(FileEnd end, std::span<const FilePart> parts, Bytes each) {
  GpuStaging* staging = staging_ ? &*staging_ : nullptr;
  if (parts.size() > 1) {
    while (!parts.empty()) {
      const Kind kind{work(parts), end, each};
      const FileWays::Found found = find(kind);
      const std::size_t count = found.ways.section(each, parts.size());
      move_section(kind, found, parts.first(count), staging);
      parts = parts.subspan(count);
    }
    return;
  }
  for (FilePart rest = parts.front(); rest.memory.bytes != 0;) {
    FilePart section = rest;
    const Kind kind{work({&section, 1}), end, each};
    const FileWays::Found found = find(kind);
    section.memory.bytes = std::min(found.ways.section(each), rest.memory.bytes);
    move_section(kind, found, {&section, 1}, staging);
    rest.offset += section.memory.bytes;
    rest.memory = rest.memory.slice(section.memory.bytes, rest.memory.bytes - section.memory.bytes);
  }
}

void FileMoves::move_section(const Kind& kind, const FileWays::Found& found, std::span<const FilePart> parts,
                             GpuStaging* staging) {
  std::optional<StagedRoad> staged;
  if (found.end != kind.end) staged.emplace(*staging, found.roads, found.bounce);
  FileRoad& road = staged ? *staged : *found.roads.front();
  PieceQueue pieces(road.pieces(use_, file_, parts));
  const bool watches = found.times_of == kind.end;
  const Clock::time_point begun = Clock::now();
  bool is_late = false;
  std::exception_ptr failed;
  {
    std::optional<Alarm> alarm;
    const bool in_pieces = pieces.all().size() > 1;  // one piece alone is not broken off
    const auto patience = watches && in_pieces ? found.ways.patience(each_of(parts), parts.size()) : std::nullopt;
    if (patience)
      alarm.emplace(*patience, [&] {
        is_late = true;
        try {
          take_next_way(kind, parts, since(begun), pieces);
        } catch (...) {
          failed = std::current_exception();
        }
      });
    road.move(use_, file_, pieces);
  }
  if (failed) std::rethrow_exception(failed);
  road.finish(use_, file_, parts);
  if (watches && !is_late) look_at(kind, found.ways, parts, since(begun));
}

// While pieces of the present way are under way, and the buffers in use through which they go.
void FileMoves::take_next_way(const Kind& kind, std::span<const FilePart> parts, Seconds spent, PieceQueue& pieces) {
  look_at(kind, find(kind).ways, parts, spent);
  const std::vector<FilePart> rest = joined(pieces.withdraw());
  if (rest.empty()) return;
  std::optional<GpuStaging> own;
  if (staging_) own.emplace(staging_->gpus());
  move_section(kind, find(kind), rest, own ? &*own : nullptr);
}

void FileMoves::look_at(const Kind& kind, WatchedWays& watched, std::span<const FilePart> parts, Seconds spent) const {
  const WatchedWays::Slow slow = watched.took(each_of(parts), spent, parts.size());
  if (slow.way != nullptr)
    std::fprintf(stderr, "waywiser: %s: %s by %s takes %.1f times the time of the plan; by %s from now on\n",
                 file_.path().c_str(), std::string(name(kind.work)).c_str(), text(*slow.way).c_str(), slow.times,
                 text(watched.way()).c_str());
}

}  // namespace waywiser
