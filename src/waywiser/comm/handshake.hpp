#pragma once

#include <array>
#include <span>
#include <string>

#include "waywiser/comm/frame.hpp"
#include "waywiser/comm/sha256.hpp"

namespace waywiser {

inline constexpr std::uint32_t protocol_version = 1;
// Of a frame from somebody who has proved nothing yet.
inline constexpr std::size_t largest_stranger_frame = 128;

using Nonce = std::array<std::byte, 32>;
Nonce random_nonce();         // throws io
std::string random_secret();  // 64 hexadecimal digits

// The words that two sides have said, hashed with the secret: proves that whoever made it knows the secret now.
struct Handshake {
  std::uint32_t rank = 0;
  Nonce member{}, root{};

  Digest member_proof(const std::string& secret) const { return proof("waywiser member", secret); }
  Digest root_proof(const std::string& secret) const { return proof("waywiser root", secret); }

 private:
  Digest proof(std::string_view role, const std::string& secret) const;
};

struct Hello {
  std::uint32_t version = protocol_version;
  std::uint32_t rank = 0;
  Nonce nonce{};
};
std::vector<std::byte> hello_bytes(const Hello& hello);
// All throw invalid_input.
Hello read_hello(const Frame& frame);
Nonce read_nonce(const Frame& frame);
Digest read_digest(const Frame& frame);

}  // namespace waywiser
