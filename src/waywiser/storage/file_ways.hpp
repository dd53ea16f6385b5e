#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "waywiser/storage/file_plan.hpp"
#include "waywiser/storage/storage_mechanism.hpp"
#include "waywiser/storage/watched_ways.hpp"

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

  struct Found {
    std::span<const std::unique_ptr<FileRoad>> roads;  // one at least; more: lanes of GPUs
    WatchedWays& ways;
    FileEnd end;       // what its parts are in: parts of GPUs go through host memory if it is the host's
    FileEnd times_of;  // whose memory the expected times of `ways` are of
    Bytes bounce;      // of a buffer in host memory
  };
  // For so many bytes, of each part if there are many, in memory of `end`. Throws unavailable: the only way serves GPU
  // memory, and this is the host's.
  Found find(FileWork work, FileEnd end, Bytes bytes);
  // The way that find() takes.
  const Way& way(FileWork work, FileEnd end, Bytes bytes) { return row(work, end, bytes).ways.way(); }

 private:
  struct Row {
    Bytes from = 0, to = 0;  // inclusive
    FileEnd end = FileEnd::host;
    WatchedWays ways;
  };
  void add_planned(const StorageFile& file, FileUse use, const Plan& plan);
  Row& row(FileWork work, FileEnd end, Bytes bytes);

  // Of hosts' memory the last one serves all sizes; what has no row of GPUs' goes as hosts' does.
  std::map<std::pair<FileWork, FileEnd>, std::vector<Row>> rows_;
  std::map<std::string, std::vector<std::unique_ptr<FileRoad>>> roads_;
};

}  // namespace waywiser
