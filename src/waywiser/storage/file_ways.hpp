#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "waywiser/storage/file_plan.hpp"
#include "waywiser/storage/storage_mechanism.hpp"

namespace waywiser {

// What the ways to files are chosen for: the operations of a plan.
enum class FileWork { read, read_cached, read_many, write };

std::string_view name(FileWork work) noexcept;  // "file_read"

// The ways that one open file may take: of its file system's rows of a plan, or the one that the program has named,
// else the first of the defaults that serves it. Opened on first use.
class FileWays {
 public:
  // `way`: text of the only one; empty: they are chosen. Throws invalid_input, or unavailable if that one does not
  // serve the file.
  FileWays(const StorageFile& file, FileUse use, const FilePlan& plan, const std::string& way);

  // For so many bytes, of each part if there are many.
  FileRoad& find(FileWork work, Bytes bytes);
  // The way that find() takes.
  const Way& way(FileWork work, Bytes bytes);

 private:
  struct Row {
    Bytes from = 0, to = 0;  // inclusive
    Way way;
  };
  void add_planned(const StorageFile& file, FileUse use, const Plan& plan);
  const Row& row(FileWork work, Bytes bytes) const;

  std::map<FileWork, std::vector<Row>> rows_;  // of each, the last one serves all sizes
  std::map<std::string, std::unique_ptr<FileRoad>> roads_;
};

}  // namespace waywiser
