#pragma once

#include <cstddef>
#include <cstdint>

#include "waywiser/base/units.hpp"

namespace waywiser {

// Whether this processor has the vectors (AVX2) by which blocks are hashed as fast as they are read.
bool has_wide_vectors();

// Tells long blocks apart, at the speed at which they are read or copied; does not protect against forgery. Each 8
// bytes are added to a sum of their lane, so that any change of one of them is seen; and so is the product of their
// halves, each changed by a key of their place, which sees what has moved, and what several changes leave of the sum.
class BlockHash {
 public:
  // `wide`: by vectors; the hash is the same.
  explicit BlockHash(bool wide = has_wide_vectors()) : wide_(wide) {}

  // Bytes that lie at `at` in the block, a multiple of 64, in any order; but for those at its end a multiple of 64.
  void add(Bytes at, const std::byte* data, Bytes bytes);
  // The same while it copies; a multiple of 64. `into` is at a multiple of 32.
  void copy(Bytes at, std::byte* into, const std::byte* from, Bytes bytes);
  // When all of the block's bytes are added.
  std::uint64_t value() const;

  struct Lanes {
    std::uint64_t products[8] = {}, sums[8] = {};
  };

 private:
  void take(Bytes at, const std::byte* from, std::byte* into, Bytes bytes);

  bool wide_;
  Lanes lanes_;
  Bytes bytes_ = 0;
};

std::uint64_t hash_of_block(const std::byte* data, Bytes bytes);

}  // namespace waywiser
