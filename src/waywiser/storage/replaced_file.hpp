#pragma once

#include <filesystem>
#include <memory>

#include "waywiser/storage/storage_file.hpp"

namespace waywiser {

// A file that is written without a name, or under a temporary one in the same folder, and takes its own name whole or
// not at all.
class ReplacedFile {
 public:
  // A symbolic link is followed. Throws io or invalid_input.
  explicit ReplacedFile(const std::filesystem::path& path);
  ReplacedFile(ReplacedFile&&) noexcept = default;
  ReplacedFile& operator=(ReplacedFile&&) = delete;
  ~ReplacedFile();  // removes what was not committed; what has no name goes with its descriptor

  // `named`: under a temporary name also where the file system has files without one.
  StorageFile make(bool named = false);
  // Synchronises the file, renames it, synchronises the folder. Throws io.
  void commit(const StorageFile& file);

 private:
  struct Removed {
    void operator()(std::filesystem::path* file) const noexcept;
  };
  std::filesystem::path path_;
  std::unique_ptr<std::filesystem::path, Removed> temporary_;
};

}  // namespace waywiser
