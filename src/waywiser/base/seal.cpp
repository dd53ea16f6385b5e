#include "waywiser/base/seal.hpp"

#include <cstring>

#include "waywiser/base/error.hpp"

namespace waywiser {

GcmNonce Seal::next(Direction& direction) {
  GcmNonce nonce{};
  for (std::size_t i = 0; i < sizeof direction.number; ++i)
    nonce[i] = static_cast<std::byte>(direction.number >> (8 * i));
  ++direction.number;
  return nonce;
}

std::vector<std::byte> Seal::packed() const {
  std::vector<std::byte> bytes(packed_bytes);
  std::byte* at = bytes.data();
  for (const Direction* direction : {&mine_, &theirs_}) {
    std::memcpy(at, direction->key.data(), sizeof(Key));
    std::memcpy(at + sizeof(Key), &direction->number, sizeof direction->number);
    at += sizeof(Key) + sizeof direction->number;
  }
  return bytes;
}

Seal Seal::unpack(std::span<const std::byte> bytes) {
  if (bytes.size() != packed_bytes) throw Error(ErrorKind::invalid_input, "the keys of a connection are not all there");
  Seal seal;
  seal.sealed_ = true;
  const std::byte* at = bytes.data();
  for (Direction* direction : {&seal.mine_, &seal.theirs_}) {
    std::memcpy(direction->key.data(), at, sizeof(Key));
    std::memcpy(&direction->number, at + sizeof(Key), sizeof direction->number);
    at += sizeof(Key) + sizeof direction->number;
  }
  return seal;
}

}  // namespace waywiser
