#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace waywiser {

using Digest = std::array<std::byte, 32>;

// SHA-256 (FIPS 180-4), and the keyed hash made of it (RFC 2104). For the short messages of a handshake.
Digest sha256(std::span<const std::byte> message);
Digest hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> message);

// Takes the same time wherever the two differ.
bool equal(const Digest& a, const Digest& b) noexcept;

std::string hexadecimal(std::span<const std::byte> bytes);

}  // namespace waywiser
