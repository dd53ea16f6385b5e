#pragma once

#include <cstdint>
#include <string_view>

namespace waywiser {

// How the boundary values travel: by messages of the hosts, the direct ones by kernels that reach the neighbours'
// memory.
enum class HaloVariant : std::uint8_t {  // numbers as in the C interface
  whole_field,                           // through a copy of each whole field
  per_neighbor,                          // one message for each field and part of the boundary
  packed,                                // one message for each neighbour: all fields, all parts
  direct,                                // as per_neighbor, by one kernel
  strided = 5,                           // as packed; the copy engine of a GPU packs
  gpu_aware = 7,                         // as packed; the group's messages get the packed GPU memory
  mixed,                                 // per_neighbor, packed and direct, chosen for each side of the partition
};
// Those that one word chooses.
inline constexpr HaloVariant halo_variants[] = {HaloVariant::whole_field, HaloVariant::per_neighbor,
                                                HaloVariant::packed,      HaloVariant::direct,
                                                HaloVariant::strided,     HaloVariant::gpu_aware};

[[gnu::visibility("default")]] std::string_view name(HaloVariant variant) noexcept;
// Throws invalid_input with the names of halo_variants.
[[gnu::visibility("default")]] HaloVariant parse_halo_variant(std::string_view name);
constexpr bool is_packed(HaloVariant variant) noexcept {
  return variant == HaloVariant::packed || variant == HaloVariant::strided || variant == HaloVariant::gpu_aware;
}
// Whether sides may have it while others have another one.
constexpr bool is_mixable(HaloVariant variant) noexcept {
  return variant == HaloVariant::per_neighbor || variant == HaloVariant::packed || variant == HaloVariant::direct;
}

// What the exchanges of one variant have done at one rank.
struct [[gnu::visibility("default")]] HaloCounts {
  std::uint64_t exchanges = 0;
  std::uint64_t messages = 0, message_bytes = 0;  // sent to other ranks
  std::uint64_t bus_copies = 0, bus_bytes = 0;    // copies between a GPU and host memory, both ways

  HaloCounts& operator+=(const HaloCounts& more) noexcept;
  bool operator==(const HaloCounts&) const = default;
};

}  // namespace waywiser
