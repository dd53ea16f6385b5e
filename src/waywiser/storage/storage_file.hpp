#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "waywiser/base/units.hpp"
#include "waywiser/device/descriptor.hpp"
#include "waywiser/storage/file_part.hpp"

namespace waywiser {

enum class FileUse { read, write };

// A file or block device that is open: through the page cache, and past it where the file system allows that.
class StorageFile {
 public:
  // Throws io with the path; invalid_input: neither a file nor a block device.
  static StorageFile for_reading(const std::filesystem::path& path);
  // Of a descriptor of any kind; `path` is what messages call it.
  StorageFile(Descriptor descriptor, std::string path, FileUse use);

  const std::string& path() const noexcept { return path_; }
  int cached_descriptor() const noexcept { return cached_.number(); }
  int direct_descriptor() const noexcept { return direct_.number(); }  // -1: why_not_direct()
  const std::optional<std::string>& why_not_direct() const noexcept { return why_not_direct_; }
  // Of the file's blocks and of memory, for direct access.
  Bytes block() const noexcept { return block_; }
  Bytes memory_alignment() const noexcept { return memory_alignment_; }
  bool can_go_directly(const FilePart& piece) const noexcept;  // as it is, without a copy

  Bytes size() const;
  // Whether the first, the middle and the last page of the range are in the page cache.
  bool seems_cached(Bytes offset, Bytes bytes) const;
  // From now on reads come from the device. False: the file system keeps the pages.
  bool drop_cache() const;
  void synchronize() const;  // throws io

  // Reads or writes the whole piece by `descriptor`, one of the two. Throws io.
  void transfer(FileUse use, int descriptor, const FilePart& piece) const;
  // Throws io: "PATH: cannot read 4096 bytes at 8192: WHY".
  [[noreturn]] void fail(FileUse use, const FilePart& piece, const std::string& why) const;
  // Throws io for a piece of which fewer bytes moved than it has, without an error of the system.
  [[noreturn]] void fail_short(FileUse use, const FilePart& piece) const;

 private:
  void open_direct(FileUse use);

  std::string path_;
  Descriptor cached_, direct_;
  std::optional<std::string> why_not_direct_;
  Bytes block_ = 0, memory_alignment_ = 0;
};

}  // namespace waywiser
