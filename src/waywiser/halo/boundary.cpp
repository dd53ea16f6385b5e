#include "waywiser/halo/boundary.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace waywiser {
namespace {

std::vector<BoundaryPart> parts_of(const std::vector<HaloSide>& sides, std::span<const HaloField> fields,
                                   std::size_t cells) {
  std::vector<BoundaryPart> parts;
  for (const HaloSide& side : sides)
    for (std::size_t field = 0; field < fields.size(); ++field)
      if (side.cells.count * fields[field].components != 0)
        parts.push_back(
            {side.peer, static_cast<std::uint32_t>(field), bytes_of_cells(side.cells, fields[field], cells)});
  std::ranges::stable_sort(parts, {}, [&](const BoundaryPart& each) {
    return std::pair(each.peer, -static_cast<int>(bytes_of(fields[each.field].type)));
  });
  return parts;
}

std::size_t lay_out(const std::vector<BoundaryPart>& parts, int rank, std::vector<std::size_t>& places) {
  std::size_t bytes = 0;
  for (const BoundaryPart& each : parts) {
    places.push_back(bytes);
    if (each.peer != rank) bytes += each.part.count;
  }
  return bytes;
}

}  // namespace

HaloBoundary boundary_of(const HaloPartition& partition, std::span<const HaloField> fields) {
  HaloBoundary boundary{partition.rank, partition.ranks, {}, {}, {}};
  for (const HaloField& each : fields) boundary.field_bytes.push_back(partition.cells * each.bytes_per_cell());
  boundary.gives = parts_of(partition.gives, fields, partition.cells);
  boundary.takes = parts_of(partition.takes, fields, partition.cells);
  return boundary;
}

PackedBoundary::PackedBoundary(const HaloBoundary& boundary) {
  give_bytes = lay_out(boundary.gives, boundary.rank, gives);
  take_bytes = lay_out(boundary.takes, boundary.rank, takes);
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
