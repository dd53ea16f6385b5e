#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "waywiser/comm/schedule.hpp"
#include "waywiser/halo/field.hpp"
#include "waywiser/halo/partition.hpp"

namespace waywiser {

// A part of one field that goes to a rank or comes from it, in bytes.
struct BoundaryPart {
  int peer = 0;
  std::uint32_t field = 0;
  ArrayPart part;
};

// All that one rank exchanges, in the order of its messages: by peer, then fields with larger elements first (so that
// elements are aligned where parts lie packed), then by entry of the partition and by field. None is empty.
struct HaloBoundary {
  int rank = 0, ranks = 1;
  std::vector<std::size_t> field_bytes;  // of each field's array
  std::vector<BoundaryPart> gives, takes;
};

HaloBoundary boundary_of(const HaloPartition& partition, std::span<const HaloField> fields);

// The parts for other ranks one after the other, without gaps.
struct PackedBoundary {
  std::vector<std::size_t> gives, takes;  // where each part begins; parts of this rank itself have no place
  std::size_t give_bytes = 0, take_bytes = 0;

  explicit PackedBoundary(const HaloBoundary& boundary);
};

// What a schedule does in one start, by its steps.
struct ScheduleCounts {
  std::uint64_t messages = 0, message_bytes = 0;    // sent to other ranks
  std::uint64_t local_copies = 0, local_bytes = 0;  // copy, pack, unpack

  explicit ScheduleCounts(const Schedule& schedule);
};

}  // namespace waywiser
