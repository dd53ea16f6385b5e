#include "waywiser/comm/handshake.hpp"

#include <sys/random.h>

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
  if (::getrandom(nonce.data(), nonce.size(), 0) != static_cast<ssize_t>(nonce.size()))
    throw Error(ErrorKind::io, "no random numbers: " + last_system_error());
  return nonce;
}

std::string random_secret() { return hexadecimal(random_nonce()); }

Digest Handshake::proof(std::string_view role, const std::string& secret) const {
  WireWriter said;
  said.text(role);
  said.number(protocol_version);
  said.number(rank);
  said.raw(member);
  said.raw(root);
  return hmac_sha256(std::as_bytes(std::span(secret)), said.bytes());
}

std::vector<std::byte> hello_bytes(const Hello& hello) {
  WireWriter writer;
  writer.number(hello.version);
  writer.number(hello.rank);
  writer.raw(hello.nonce);
  return writer.bytes();
}

// The version comes first in all versions, so that another one is told so.
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
