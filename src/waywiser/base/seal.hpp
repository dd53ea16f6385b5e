#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "waywiser/base/crypto.hpp"

namespace waywiser {

// Encrypts and authenticates the messages of one connection: each gets a mark made of a key of its direction, its
// number and all its bytes, so none can be read, made, changed, repeated or left out by who does not know the key. How
// many there are and how long is no secret.
class Seal {
 public:
  using Key = Digest;
  using Mark = GcmTag;
  static constexpr std::size_t mark_bytes = sizeof(Mark);

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
  // Of this side's next message, and of the other side's; `head` stays as it is. False: it is not from there.
  Mark close(std::span<const std::byte> head, std::span<std::byte> body) {
    return encrypt(mine_.key, next(mine_), head, body);
  }
  bool open(std::span<const std::byte> head, std::span<std::byte> body, std::span<const std::byte> mark) {
    return decrypt(theirs_.key, next(theirs_), head, body, mark);
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
  static GcmNonce next(Direction& direction);

  bool sealed_ = false;
  Direction mine_, theirs_;
};

}  // namespace waywiser
