#include "waywiser/storage/storage_mechanism.hpp"

#include <algorithm>
#include <array>

#include "waywiser/base/error.hpp"
#include "waywiser/policy/defaults.hpp"

namespace waywiser {
namespace {

constexpr Bytes least_chunk = 4096, most_chunk = Bytes{1} << 30, most_bounce = Bytes{256} << 20;
constexpr unsigned most_at_once = 1024, most_lanes = 64;

}  // namespace

void FileRoad::run(FileUse use, const StorageFile& file, std::span<const FilePart> parts) {
  PieceQueue queue(pieces(use, file, parts));
  move(use, file, queue);
  finish(use, file, parts);
}

std::span<const StorageMechanism> storage_mechanisms() {
  static const std::array table{buffered_mechanism(), io_uring_mechanism(), direct_mechanism(), mapped_mechanism(),
                                cufile_mechanism()};
  return table;
}

const StorageMechanism& storage_mechanism(std::string_view name) {
  std::string known;
  for (const StorageMechanism& each : storage_mechanisms()) {
    if (each.name == name) return each;
    known += (known.empty() ? "" : ", ") + std::string(each.name);
  }
  throw Error(ErrorKind::invalid_input, quoted(name, 80) + " is no way to a file: " + known);
}

RoadShape road_shape(const Way& way, std::string_view second, const RoadShape& without) {
  RoadShape shape = without;
  const auto chunk = way.parameters.find("chunk");
  if (chunk != way.parameters.end()) shape.chunk = parse_bytes(chunk->second);
  const bool known = way.has_only({"chunk", "bounce", "lanes", second}) && way.read(second, most_at_once, shape.count);
  if (!known || shape.chunk < least_chunk || shape.chunk > most_chunk)
    refuse_input(text(way), "a way to a file has chunk=4K to 1G and " + std::string(second) + "=1 to 1024");
  (void)bounce_of(way);
  return shape;
}

Bounce bounce_of(const Way& way) {
  const auto bounce = way.parameters.find("bounce");
  Bounce found{bounce == way.parameters.end() ? Bytes{defaults::file_chunk} : parse_bytes(bounce->second)};
  if (!way.read("lanes", most_lanes, found.lanes) || found.bytes < least_chunk || found.bytes > most_bounce)
    refuse_input(text(way), "GPUs are served with bounce=4K to 256M and lanes=1 to 64");
  return found;
}

}  // namespace waywiser
