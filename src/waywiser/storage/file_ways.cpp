#include "waywiser/storage/file_ways.hpp"

#include <array>
#include <cstdio>
#include <optional>

#include "waywiser/base/error.hpp"
#include "waywiser/policy/defaults.hpp"
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
  std::vector<Way> ways;
  for (const std::string_view each : defaults::file_ways) ways.push_back({std::string(each)});
  return ways;
}

std::optional<std::string> why_not(const Way& way, const StorageFile& file, FileUse use) {
  return storage_mechanism(way.name).why_not(file, use);
}

void tell(const PlanRow& row, const StorageFile& file, const std::string& why) {
  std::fprintf(stderr, "waywiser: %s: %s by %s, which the plan has from %s on, does not run: %s\n", file.path().c_str(),
               row.key.operation.c_str(), text(row.way()).c_str(), format_bytes(row.from_bytes).c_str(), why.c_str());
}

// The row's ways that serve the file; nothing falls back in silence.
std::vector<RankedWay> those_that_serve(const PlanRow& row, const StorageFile& file, FileUse use, FileEnd end) {
  std::vector<RankedWay> serving;
  for (const RankedWay& each : row.ways) {
    if (end == FileEnd::host && storage_mechanism(each.way.name).end == FileEnd::gpu) continue;
    const std::optional<std::string> why = why_not(each.way, file, use);
    if (!why) serving.push_back(each);
    if (why && &each == &row.ways.front()) tell(row, file, *why);
  }
  return serving;
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
    (void)storage_mechanism(only.name).open(only);  // refuses wrong parameters here, not when bytes move
    for (const FileWork work : works_of(use))
      rows_[{work, storage_mechanism(only.name).end}] = {{0, no_end, FileEnd::host, WatchedWays({{only}})}};
    return;
  }
  if (plan.plan() != nullptr) add_planned(file, use, *plan.plan());
  for (const FileWork work : works_of(use))
    for (const Way& each : default_ways(work))
      if (!why_not(each, file, use)) {
        rows_[{work, FileEnd::host}].push_back({0, no_end, FileEnd::host, WatchedWays({{each}})});
        break;
      }
}

void FileWays::add_planned(const StorageFile& file, FileUse use, const Plan& plan) {
  const std::string storage = storage_of(file);
  for (const PlanRow& row : plan.rows) {
    if (row.key.partner != storage) continue;
    const FileEnd end = row.key.memory == "gpu" ? FileEnd::gpu : FileEnd::host;
    for (const FileWork work : works_of(use)) {
      if (row.key.operation != name(work)) continue;
      std::vector<RankedWay> ways = those_that_serve(row, file, use, end);
      if (ways.empty()) continue;
      const bool whole = ways.front().way == row.way();  // the times are the first one's
      WatchedWays watched(std::move(ways), whole ? row.expected : decltype(row.expected)());
      rows_[{work, end}].push_back({row.from_bytes, row.to_bytes, end, std::move(watched)});
    }
  }
}

FileWays::Row& FileWays::row(FileWork work, FileEnd end, Bytes bytes) {
  for (const FileEnd wanted : {end, FileEnd::host})
    if (const auto rows = rows_.find({work, wanted}); rows != rows_.end())
      for (Row& each : rows->second)
        if (bytes >= each.from && bytes <= each.to) return each;
  throw Error(ErrorKind::unavailable, "the way that was set serves arrays in GPU memory alone");
}

FileWays::Found FileWays::find(FileWork work, FileEnd end, Bytes bytes) {
  Row& chosen = row(work, end, bytes);
  const Way& way = chosen.ways.way();
  const StorageMechanism& mechanism = storage_mechanism(way.name);
  const Bounce bounce = bounce_of(way);
  std::vector<std::unique_ptr<FileRoad>>& roads = roads_[text(way)];
  const std::size_t wanted = end == FileEnd::gpu && mechanism.end == FileEnd::host ? bounce.lanes : 1;
  while (roads.size() < wanted) roads.push_back(mechanism.open(way));
  return {roads, chosen.ways, mechanism.end, chosen.end, bounce.bytes};
}

}  // namespace waywiser
