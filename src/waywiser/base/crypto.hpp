#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "waywiser/base/secret.hpp"

namespace waywiser {

// Functions of OpenSSL's libcrypto, opened on first use: WAYWISER_LIBCRYPTO, else the one that the loader finds, else
// the copy that this process has already opened.
using Digest = std::array<std::byte, 32>;

// Empty: libcrypto is available. Otherwise what is missing, and the remedy.
const std::string& why_no_crypto();
// The file, for people; empty without one.
const std::string& libcrypto_path();
// HMAC-SHA-256 (RFC 2104). Throws unavailable.
Digest hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> message);

// AES-256-GCM (NIST SP 800-38D) of one message in place: `body` is encrypted; the tag also authenticates `head`, which
// stays plain. Use a key only once with each nonce. Throw unavailable.
using GcmNonce = std::array<std::byte, 12>;
using GcmTag = std::array<std::byte, 16>;
GcmTag encrypt(const Digest& key, const GcmNonce& nonce, std::span<const std::byte> head, std::span<std::byte> body);
// False: not encrypted with this key and nonce. The body is then lost.
bool decrypt(const Digest& key, const GcmNonce& nonce, std::span<const std::byte> head, std::span<std::byte> body,
             std::span<const std::byte> tag);

// Takes the same time whichever byte differs. False if the lengths differ. Throws unavailable.
bool equal(std::span<const std::byte> a, std::span<const std::byte> b);

// Random bytes from the kernel. Throws io.
void fill_with_random(std::span<std::byte> bytes);
std::string hexadecimal(std::span<const std::byte> bytes);

}  // namespace waywiser
