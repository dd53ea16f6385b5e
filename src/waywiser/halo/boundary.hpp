#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "waywiser/comm/schedule.hpp"
#include "waywiser/halo/field.hpp"
#include "waywiser/halo/partition.hpp"
#include "waywiser/halo/variant.hpp"

namespace waywiser {

// A part of one field that goes to a rank or comes from it, in bytes.
struct BoundaryPart {
  int peer = 0;
  std::uint32_t field = 0;
  ArrayPart part;
  std::size_t side = 0;  // the entry of the partition
  HaloVariant variant = HaloVariant::packed;
};

// All that one rank exchanges, in the order of its messages: by peer, then fields with larger elements first (so that
// elements are aligned where parts lie packed), then by entry of the partition and by field. None is empty. What the
// rank gives itself of a planar field is a part for each component where it would be a long list otherwise.
struct HaloBoundary {
  int rank = 0, ranks = 1;
  std::vector<std::size_t> field_bytes;  // of each field's array
  std::vector<BoundaryPart> gives, takes;
};

HaloBoundary boundary_of(const HaloPartition& partition, std::span<const HaloField> fields);

// The variant of each side of a partition: those that this rank gives, and those that it takes.
struct HaloMix {
  std::vector<HaloVariant> gives, takes;

  bool operator==(const HaloMix&) const = default;
};
HaloBoundary with_variant(HaloBoundary boundary, HaloVariant variant);
HaloBoundary with_variants(HaloBoundary boundary, const HaloMix& mix);
// The parts that kernels move, or all others.
HaloBoundary parts_of_kernels(HaloBoundary boundary, bool kernels);

// Parts for other ranks one after the other, without gaps: first those of packed variants, in the order of the
// messages.
struct PackedBoundary {
  static constexpr std::size_t nowhere = ~std::size_t{0};
  std::vector<std::size_t> gives, takes;  // where each part begins
  std::size_t give_bytes = 0, take_bytes = 0;
  std::size_t give_packed = 0, take_packed = 0;  // bytes of packed variants

  // `all`: other variants' parts come behind them; else only packed ones have a place.
  PackedBoundary(const HaloBoundary& boundary, bool all);
};

// What a schedule does in one start, by its steps.
struct ScheduleCounts {
  std::uint64_t messages = 0, message_bytes = 0;    // sent to other ranks
  std::uint64_t local_copies = 0, local_bytes = 0;  // copy, pack, unpack

  explicit ScheduleCounts(const Schedule& schedule);
};

}  // namespace waywiser
