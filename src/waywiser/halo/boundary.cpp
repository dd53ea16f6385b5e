#include "waywiser/halo/boundary.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace waywiser {
namespace {

// The sides that are not empty and that a rank gives to, or takes from, itself.
std::vector<std::size_t> own_sides(const std::vector<HaloSide>& sides, int rank) {
  std::vector<std::size_t> own;
  for (std::size_t side = 0; side < sides.size(); ++side)
    if (sides[side].peer == rank && sides[side].cells.count != 0) own.push_back(side);
  return own;
}

// Whether each side goes component by component: both ends of a copy alike.
struct Divided {
  std::vector<bool> gives, takes;

  Divided(const HaloPartition& partition, const HaloField& field)
      : gives(partition.gives.size()), takes(partition.takes.size()) {
    const std::vector<std::size_t> given = own_sides(partition.gives, partition.rank),
                                   taken = own_sides(partition.takes, partition.rank);
    for (std::size_t i = 0; i < std::min(given.size(), taken.size()); ++i)
      gives[given[i]] = takes[taken[i]] =
          makes_a_list(partition.gives[given[i]].cells, field) || makes_a_list(partition.takes[taken[i]].cells, field);
  }
};

std::vector<BoundaryPart> parts_of(const HaloPartition& partition, std::span<const HaloField> fields, bool given) {
  const std::vector<HaloSide>& sides = given ? partition.gives : partition.takes;
  std::vector<Divided> divided;
  for (const HaloField& field : fields) divided.emplace_back(partition, field);
  std::vector<BoundaryPart> parts;
  for (std::size_t side = 0; side < sides.size(); ++side)
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const HaloField& field = fields[i];
      const ArrayPart& cells = sides[side].cells;
      if (cells.count * field.components == 0) continue;
      const auto add = [&](ArrayPart part) {
        parts.push_back({sides[side].peer, static_cast<std::uint32_t>(i), std::move(part), side, HaloVariant::packed});
      };
      if (!(given ? divided[i].gives : divided[i].takes)[side]) {
        add(bytes_of_cells(cells, field, partition.cells));
        continue;
      }
      for (std::size_t component = 0; component < field.components; ++component)
        add(bytes_of_component(cells, field, partition.cells, component));
    }
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
  boundary.gives = parts_of(partition, fields, true);
  boundary.takes = parts_of(partition, fields, false);
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
    std::erase_if(*parts, [&](const BoundaryPart& each) { return (each.variant == HaloVariant::direct) != kernels; });
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
