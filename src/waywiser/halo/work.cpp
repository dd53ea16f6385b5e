#include "waywiser/halo/work.hpp"

#include <span>

#include "waywiser/halo/halo_schedule.hpp"
#include "waywiser/halo/strided_parts.hpp"

namespace waywiser {
namespace {

// The copies of what goes to other ranks, or comes from them.
std::vector<Bytes> copies_of(std::span<const BoundaryPart> parts, int rank, HaloVariant variant) {
  std::vector<Bytes> apart;
  Bytes together = 0;
  for (const BoundaryPart& each : parts) {
    if (each.peer == rank) continue;
    together += each.part.count;
    if (variant == HaloVariant::per_neighbor) apart.push_back(each.part.count);
    if (variant == HaloVariant::strided)
      for (const StridedRows& rows : strided_copies(each.part)) apart.push_back(rows.bytes());
  }
  if (variant == HaloVariant::packed && together != 0) apart.push_back(together);
  return apart;
}

}  // namespace

HaloWork work_of(HaloVariant variant, const HaloBoundary& boundary, bool on_gpu) {
  HaloWork work;
  for (const Step& each : halo_schedule(variant, boundary).steps)
    if (each.kind == StepKind::send) work.messages.push_back(each.source.count);
  if (variant == HaloVariant::whole_field) {
    for (const std::size_t bytes : boundary.field_bytes)
      if (bytes != 0) work.out.push_back(bytes);
    work.back = work.out;
  } else if (on_gpu || variant == HaloVariant::packed) {  // on hosts all other parts leave from where they lie
    work.out = copies_of(boundary.gives, boundary.rank, variant);
    work.back = copies_of(boundary.takes, boundary.rank, variant);
  }
  return work;
}

}  // namespace waywiser
