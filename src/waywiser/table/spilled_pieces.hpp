#pragma once

#include <filesystem>
#include <optional>

#include "waywiser/storage/file.hpp"

namespace waywiser {

// A folder for files that nobody else knows, which goes with all that is in it.
class SpillFolder {
 public:
  explicit SpillFolder(const std::filesystem::path& parent);  // throws io
  SpillFolder(const SpillFolder&) = delete;
  SpillFolder& operator=(const SpillFolder&) = delete;
  ~SpillFolder();
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

// Pieces of one part in a file of their own: all are added before one is read. By the way to files that was measured.
class SpilledPieces {
 public:
  explicit SpilledPieces(std::filesystem::path file);  // a new one; throws io, as all calls
  Bytes add(ConstRegion piece);                        // where it begins
  void read(Bytes begin, Region into);

 private:
  std::filesystem::path path_;
  std::optional<File> writing_, reading_;
  Bytes end_ = 0;
};

}  // namespace waywiser
