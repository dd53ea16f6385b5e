#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>

#include "waywiser/storage/file_ways.hpp"
#include "waywiser/storage/gpu_staging.hpp"

namespace waywiser {

// Moves parts of one open file by the ways that are chosen for them, one call at a time. A way that has become slow is
// left, also while pieces that it has begun are still under way: those that it has not begun go by the next one.
class FileMoves {
 public:
  // Throws as FileWays.
  FileMoves(const StorageFile& file, FileUse use, const FilePlan& plan, const std::string& way)
      : file_(file), use_(use), ways_(file, use, plan, way) {}

  void use_gpus(std::shared_ptr<Platform> gpus) { staging_.emplace(std::move(gpus)); }
  bool has_gpus() const noexcept { return staging_.has_value(); }
  // Throws as FileRoad::run.
  void move(std::span<const FilePart> parts);
  // The way that it takes for one part.
  const Way& way(const FilePart& part);

 private:
  // What the way is chosen by.
  struct Kind {
    FileWork work;
    FileEnd end;
    Bytes each;  // of a part
  };
  FileWork work(std::span<const FilePart> parts) const;
  void move_to(FileEnd end, std::span<const FilePart> parts, Bytes each);
  void move_section(const Kind& kind, const FileWays::Found& found, std::span<const FilePart> parts,
                    GpuStaging* staging);
  FileWays::Found find(const Kind& kind) { return ways_.find(kind.work, kind.end, kind.each); }
  void take_next_way(const Kind& kind, std::span<const FilePart> parts, Seconds spent, PieceQueue& pieces);
  void look_at(const Kind& kind, WatchedWays& watched, std::span<const FilePart> parts, Seconds spent) const;

  const StorageFile& file_;
  FileUse use_;
  FileWays ways_;
  std::optional<GpuStaging> staging_;
};

}  // namespace waywiser
