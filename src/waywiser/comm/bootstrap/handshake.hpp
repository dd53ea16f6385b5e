#pragma once

#include <array>
#include <span>
#include <string>

#include "waywiser/base/crypto.hpp"
#include "waywiser/comm/bootstrap/frame.hpp"

namespace waywiser {

inline constexpr std::uint32_t protocol_version = 7;
// For a frame from a peer that has not proved anything yet.
inline constexpr std::size_t largest_stranger_frame = 128;

using Nonce = std::array<std::byte, 32>;
Nonce random_nonce();  // throws io

// Hashes of both sides' nonces with the secret: prove that their maker knows the secret now. All functions throw
// unavailable without libcrypto.
struct Handshake {
  std::uint32_t rank = 0;
  Nonce member{}, root{};

  Digest member_proof(const Secret& secret) const { return hashed("waywiser member", secret); }
  Digest root_proof(const Secret& secret) const { return hashed("waywiser root", secret); }
  // Seals all later frames.
  Seal member_seal(const Secret& secret) const { return {member_key(secret), root_key(secret)}; }
  Seal root_seal(const Secret& secret) const { return {root_key(secret), member_key(secret)}; }

 private:
  Digest member_key(const Secret& secret) const { return hashed("waywiser member's frames", secret); }
  Digest root_key(const Secret& secret) const { return hashed("waywiser root's frames", secret); }
  Digest hashed(std::string_view role, const Secret& secret) const;
};

// Known only to the ranks of one meeting, since `word` is fresh.
std::uint64_t tag_key(const Secret& secret, const Nonce& word);
// Of ranks whose table no other user could read.
std::uint64_t tag_key(const Nonce& word);

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
