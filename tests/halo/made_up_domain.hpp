#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "waywiser/halo/boundary.hpp"
#include "waywiser/halo/field.hpp"
#include "waywiser/halo/grid.hpp"

namespace waywiser {

// A partitioned domain, and the contents of each rank's arrays before and after an exchange, looked up in the whole
// domain cell by cell. The seed draws it: boxes of all sizes, empty ones too, or the cell lists of a mesh.
struct MadeUpDomain {
  static MadeUpDomain of_grid(int ranks, std::uint64_t seed);
  // Each rank owns a random part of the cells, and has ghosts of some other cells, at times of its own. Two ranks are
  // neighbours only if one has ghosts of the other's cells. The order in an array is random too.
  static MadeUpDomain of_lists(int ranks, std::uint64_t seed);
  // The domain is a given grid; the seed draws the fields.
  static MadeUpDomain of(const HaloGrid& grid, std::uint64_t seed);

  std::size_t bytes(int rank, std::size_t field) const;
  std::vector<std::byte> before(int rank, std::size_t field, int start) const;
  std::vector<std::byte> after(int rank, std::size_t field, int start) const;

  std::vector<HaloPartition> partitions;  // by rank
  std::vector<HaloField> fields;

 private:
  struct LocalCell {
    std::int64_t whole = -1;  // in the whole domain; -1: it never gets a value
    bool owned = false;
  };
  struct Places {
    std::vector<std::int64_t> given, taken;
  };
  static Places ghosts(const std::vector<LocalCell>& taker, const std::vector<LocalCell>& giver);
  HaloPartition listed(int rank) const;
  void draw_fields(std::mt19937_64& generator);
  std::vector<std::byte> values(int rank, std::size_t field, int start, bool ghosts) const;

  std::vector<std::vector<LocalCell>> cells_;  // by rank
};

// Those of hosts, then that of kernels.
inline constexpr HaloVariant mixable[] = {HaloVariant::per_neighbor, HaloVariant::packed, HaloVariant::direct};
// Draws a variant for each side, the same at the rank that gives it and at the one that takes it.
HaloMix made_up_mix(const HaloPartition& partition, std::uint64_t seed, std::span<const HaloVariant> among);

}  // namespace waywiser
