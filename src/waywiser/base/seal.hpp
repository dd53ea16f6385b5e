#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "waywiser/base/crypto.hpp"

namespace waywiser {

// Authenticates the messages of one connection: each gets a mark made of a key of its direction, its number and all its
// bytes, so none can be made, changed, repeated or left out by who does not know the key. It hides nothing.
class Seal {
 public:
  using Key = Digest;
  static constexpr std::size_t mark_bytes = 16;
  using Mark = std::array<std::byte, mark_bytes>;

  Seal() = default;  // none: the kernel vouches for the other side
  Seal(const Key& mine, const Key& theirs) : sealed_(true), mine_{mine, 0}, theirs_{theirs, 0} {}
  Seal(const Seal&) = default;
  Seal& operator=(const Seal&) = default;
  ~Seal() {
    wipe(mine_.key);
    wipe(theirs_.key);
  }

  explicit operator bool() const noexcept { return sealed_; }
  std::size_t bytes() const noexcept { return sealed_ ? mark_bytes : 0; }
  // Of this side's next message, and of the other side's.
  Mark next_mark(std::span<const std::byte> message) { return mark(mine_, message); }
  bool check_next(std::span<const std::byte> message, std::span<const std::byte> its_mark) {
    return equal(mark(theirs_, message), its_mark);
  }

  // For another process of this machine that goes on with the connection.
  static constexpr std::size_t packed_bytes = 2 * (sizeof(Key) + sizeof(std::uint64_t));
  std::vector<std::byte> packed() const;
  static Seal unpack(std::span<const std::byte> bytes);  // throws invalid_input

 private:
  struct Direction {
    Key key{};
    std::uint64_t number = 0;
  };
  static Mark mark(Direction& direction, std::span<const std::byte> message);

  bool sealed_ = false;
  Direction mine_, theirs_;
};

}  // namespace waywiser
