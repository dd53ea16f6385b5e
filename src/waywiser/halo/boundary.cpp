#include "waywiser/halo/boundary.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace waywiser {
namespace {

std::vector<BoundaryPart> parts_of(const std::vector<HaloSide>& sides, std::span<const HaloField> fields,
                                   std::size_t cells) {
  std::vector<BoundaryPart> parts;
  for (std::size_t side = 0; side < sides.size(); ++side)
    for (std::size_t field = 0; field < fields.size(); ++field)
      if (sides[side].cells.count * fields[field].components != 0)
        parts.push_back({sides[side].peer, static_cast<std::uint32_t>(field),
                         bytes_of_cells(sides[side].cells, fields[field], cells), side, HaloVariant::packed});
  std::ranges::stable_sort(parts, {}, [&](const BoundaryPart& each) {
    return std::pair(each.peer, -static_cast<int>(bytes_of(fields[each.field].type)));
  });
  return parts;
}

struct LaidOut {
  std::vector<std::size_t> places;
  std::size_t packed = 0, bytes = 0;
};

LaidOut lay_out(const std::vector<BoundaryPart>& parts, int rank, bool all) {
  LaidOut made{std::vector(parts.size(), PackedBoundary::nowhere), 0, 0};
  for (const bool together : {true, false}) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].peer == rank || is_packed(parts[i].variant) != together || !(together || all)) continue;
      made.places[i] = made.bytes;
      made.bytes += parts[i].part.count;
    }
    if (together) made.packed = made.bytes;
  }
  return made;
}

}  // namespace

HaloBoundary boundary_of(const HaloPartition& partition, std::span<const HaloField> fields) {
  HaloBoundary boundary{partition.rank, partition.ranks, {}, {}, {}};
  for (const HaloField& each : fields) boundary.field_bytes.push_back(partition.cells * each.bytes_per_cell());
  boundary.gives = parts_of(partition.gives, fields, partition.cells);
  boundary.takes = parts_of(partition.takes, fields, partition.cells);
  return boundary;
}

HaloBoundary with_variant(HaloBoundary boundary, HaloVariant variant) {
  for (auto* parts : {&boundary.gives, &boundary.takes})
    for (BoundaryPart& each : *parts) each.variant = variant;
  return boundary;
}

HaloBoundary with_variants(HaloBoundary boundary, const HaloMix& mix) {
  for (BoundaryPart& each : boundary.gives) each.variant = mix.gives.at(each.side);
  for (BoundaryPart& each : boundary.takes) each.variant = mix.takes.at(each.side);
  return boundary;
}

HaloBoundary parts_of_kernels(HaloBoundary boundary, bool kernels) {
  for (auto* parts : {&boundary.gives, &boundary.takes})
    std::erase_if(*parts, [&](const BoundaryPart& each) { return is_direct(each.variant) != kernels; });
  return boundary;
}

PackedBoundary::PackedBoundary(const HaloBoundary& boundary, bool all) {
  LaidOut given = lay_out(boundary.gives, boundary.rank, all), taken = lay_out(boundary.takes, boundary.rank, all);
  gives = std::move(given.places);
  takes = std::move(taken.places);
  give_bytes = given.bytes;
  take_bytes = taken.bytes;
  give_packed = given.packed;
  take_packed = taken.packed;
}

ScheduleCounts::ScheduleCounts(const Schedule& schedule) {
  for (const Step& step : schedule.steps) {
    if (step.kind == StepKind::send) {
      ++messages;
      message_bytes += step.source.count;
    }
    if (!is_local(step.kind)) continue;
    ++local_copies;
    local_bytes += step.source.count;
  }
}

}  // namespace waywiser
