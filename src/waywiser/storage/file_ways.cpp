#include "waywiser/storage/file_ways.hpp"

#include <array>
#include <cstdio>
#include <optional>

#include "waywiser/base/error.hpp"
#include "waywiser/policy/plan.hpp"
#include "waywiser/storage/mount.hpp"

namespace waywiser {
namespace {

constexpr std::array reading{FileWork::read, FileWork::read_cached, FileWork::read_many};
constexpr std::array writing{FileWork::write};

std::span<const FileWork> works_of(FileUse use) {
  return use == FileUse::read ? std::span<const FileWork>(reading) : std::span<const FileWork>(writing);
}

// In the order of preference without a plan.
std::vector<Way> default_ways(FileWork work) {
  if (work == FileWork::read_cached) return {{"buffered"}};
  return {{"io_uring"}, {"direct"}, {"buffered"}};
}

std::optional<std::string> why_not(const Way& way, const StorageFile& file, FileUse use) {
  return storage_mechanism(way.name).why_not(file, use);
}

void tell(const PlanRow& row, const StorageFile& file, const std::string& why) {
  std::fprintf(stderr, "waywiser: %s: %s by %s, which the plan has from %s on, does not run: %s\n", file.path().c_str(),
               row.key.operation.c_str(), text(row.way()).c_str(), format_bytes(row.from_bytes).c_str(), why.c_str());
}

// The row's first way that serves the file; nothing falls back in silence.
std::optional<Way> first_that_serves(const PlanRow& row, const StorageFile& file, FileUse use) {
  for (const RankedWay& each : row.ways) {
    const std::optional<std::string> why = why_not(each.way, file, use);
    if (!why) return each.way;
    if (&each == &row.ways.front()) tell(row, file, *why);
  }
  return {};
}

}  // namespace

std::string_view name(FileWork work) noexcept {
  switch (work) {
    case FileWork::read: return "file_read";
    case FileWork::read_cached: return "file_read_cached";
    case FileWork::read_many: return "file_read_many";
    case FileWork::write: break;
  }
  return "file_write";
}

FileWays::FileWays(const StorageFile& file, FileUse use, const FilePlan& plan, const std::string& way) {
  if (!way.empty()) {
    const Way only = parse_way(way);
    if (const auto why = why_not(only, file, use))
      throw Error(ErrorKind::unavailable, file.path() + ": " + way + " does not serve it: " + *why);
    for (const FileWork work : works_of(use)) rows_[work].push_back({0, no_end, only});
    return;
  }
  if (plan.plan() != nullptr) add_planned(file, use, *plan.plan());
  for (const FileWork work : works_of(use))
    for (const Way& each : default_ways(work))
      if (!why_not(each, file, use)) {
        rows_[work].push_back({0, no_end, each});
        break;
      }
}

void FileWays::add_planned(const StorageFile& file, FileUse use, const Plan& plan) {
  const std::string storage = storage_of(file);
  for (const PlanRow& row : plan.rows) {
    if (row.key.partner != storage) continue;
    for (const FileWork work : works_of(use)) {
      if (row.key.operation != name(work)) continue;
      if (std::optional<Way> way = first_that_serves(row, file, use))
        rows_[work].push_back({row.from_bytes, row.to_bytes, *std::move(way)});
    }
  }
}

const FileWays::Row& FileWays::row(FileWork work, Bytes bytes) const {
  const std::vector<Row>& rows = rows_.at(work);
  for (const Row& each : rows)
    if (bytes >= each.from && bytes <= each.to) return each;
  return rows.back();
}

const Way& FileWays::way(FileWork work, Bytes bytes) { return row(work, bytes).way; }

FileRoad& FileWays::find(FileWork work, Bytes bytes) {
  const Way& way = row(work, bytes).way;
  std::unique_ptr<FileRoad>& road = roads_[text(way)];
  if (!road) road = storage_mechanism(way.name).open(way);
  return *road;
}

}  // namespace waywiser
