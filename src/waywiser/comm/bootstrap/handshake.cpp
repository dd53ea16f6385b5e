#include "waywiser/comm/bootstrap/handshake.hpp"

#include <algorithm>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr std::string_view handshake_name = "handshake";

std::array<std::byte, 32> only_32_bytes(const Frame& frame) {
  WireReader reader(frame.body, handshake_name);
  std::array<std::byte, 32> bytes{};
  std::ranges::copy(reader.raw(bytes.size()), bytes.begin());
  reader.end();
  return bytes;
}

}  // namespace

Nonce random_nonce() {
  Nonce nonce{};
  fill_with_random(nonce);
  return nonce;
}

Digest Handshake::hashed(std::string_view role, const Secret& secret) const {
  WireWriter said;
  said.text(role);
  said.number(protocol_version);
  said.number(rank);
  said.raw(member);
  said.raw(root);
  return hmac_sha256(secret.bytes(), said.bytes());
}

std::uint64_t tag_key(const Secret& secret, const Nonce& word) {
  WireWriter said;
  said.text("waywiser tags");
  said.raw(word);
  const Digest digest = hmac_sha256(secret.bytes(), said.bytes());
  return WireReader(digest, handshake_name).number<std::uint64_t>();
}

std::uint64_t tag_key(const Nonce& word) { return WireReader(word, handshake_name).number<std::uint64_t>(); }

std::vector<std::byte> hello_bytes(const Hello& hello) {
  WireWriter writer;
  writer.number(hello.version);
  writer.number(hello.rank);
  writer.raw(hello.nonce);
  return writer.bytes();
}

// The version comes first in every protocol version, so that a rank with another version gets a clear error.
Hello read_hello(const Frame& frame) {
  WireReader reader(frame.body, handshake_name);
  if (frame.kind != FrameKind::hello) reader.refuse("it does not begin with a greeting");
  Hello hello;
  hello.version = reader.number<std::uint32_t>();
  if (hello.version != protocol_version)
    reader.refuse("protocol version " + std::to_string(hello.version) + ", rank 0 has " +
                  std::to_string(protocol_version));
  hello.rank = reader.number<std::uint32_t>();
  std::ranges::copy(reader.raw(hello.nonce.size()), hello.nonce.begin());
  reader.end();
  return hello;
}

Nonce read_nonce(const Frame& frame) { return only_32_bytes(frame); }
Digest read_digest(const Frame& frame) { return only_32_bytes(frame); }

}  // namespace waywiser
