#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "waywiser/base/crypto.hpp"

namespace waywiser {

// Encrypts and authenticates the frames of one connection. Each frame gets an authentication tag from the key of its
// direction, its number and all its bytes, so that without the key nobody can read, forge, change, replay or drop one.
// The number and the lengths of frames are not secret.
class Seal {
 public:
  using Key = Digest;
  using Mark = GcmTag;
  static constexpr std::size_t mark_bytes = sizeof(Mark);

  Seal() = default;  // no seal: the kernel authenticates the other side
  Seal(const Key& mine, const Key& theirs) : sealed_(true), mine_{mine, 0}, theirs_{theirs, 0} {}
  Seal(const Seal&) = default;
  Seal& operator=(const Seal&) = default;
  ~Seal() {
    wipe(mine_.key);
    wipe(theirs_.key);
  }

  explicit operator bool() const noexcept { return sealed_; }
  std::size_t bytes() const noexcept { return sealed_ ? mark_bytes : 0; }
  // For this side's next frame, and the other side's; `head` stays plain. False: the other side has not sent it.
  Mark close(std::span<const std::byte> head, std::span<std::byte> body) {
    return encrypt(mine_.key, next(mine_), head, body);
  }
  bool open(std::span<const std::byte> head, std::span<std::byte> body, std::span<const std::byte> mark) {
    return decrypt(theirs_.key, next(theirs_), head, body, mark);
  }

  // For another process of this machine that takes over the connection.
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
