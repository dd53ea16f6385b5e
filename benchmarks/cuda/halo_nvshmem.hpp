#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "benchmarks/cuda/halo_rows.hpp"
#include "waywiser/group/group.hpp"

namespace waywiser {

// One face that a rank gives, where the other rank takes it, and the one that comes in exchange.
struct NvshmemFace {
  Rows give, there, take;
};

// As apps::start_nvshmem.
std::string start_nvshmem(Group& group);

// Faces of an array of 32-bit values in NVSHMEM's symmetric memory. One kernel does it all: each block packs its part,
// puts it with a signal, waits for the part that comes, and unpacks. Contiguous faces go from one array straight into
// the other without packing. Either a block asks there first whether the receiver still reads its ghosts, as each
// exchange of Waywiser does, or nothing asks, as in programs that alternate between two arrays.
class NvshmemFaces {
 public:
  // Collective: equal sizes at all ranks. Throws unavailable.
  NvshmemFaces(std::int64_t values, std::vector<NvshmemFace> faces, int other);
  NvshmemFaces(const NvshmemFaces&) = delete;
  NvshmemFaces& operator=(const NvshmemFaces&) = delete;

  static constexpr int most_blocks = 128;  // for each face
  float* array() const { return array_; }
  bool are_straight() const;  // all faces are contiguous
  // Enqueues one exchange. `asks`: only if faces go straight. Ranks meet before one with another number of blocks.
  void once(void* cuda_stream, int blocks, bool asks);
  // Collective. Not in the destructor, which may run at one rank alone.
  void release();

 private:
  std::vector<NvshmemFace> faces_;
  int other_;
  std::int64_t packed_ = 0;  // values of one of two buffers
  float *array_ = nullptr, *in_ = nullptr, *out_ = nullptr;
  std::uint64_t *signals_ = nullptr, *turns_ = nullptr, *free_ = nullptr;  // of each block of each face
};

}  // namespace waywiser
