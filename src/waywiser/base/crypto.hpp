#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace waywiser {

// Of OpenSSL's libcrypto, opened when it is first asked for: WAYWISER_LIBCRYPTO, else as the loader finds it, else the
// copy that this process has open already.
using Digest = std::array<std::byte, 32>;

// Empty: it is there. Otherwise what is missing, and what helps.
const std::string& why_no_crypto();
// The file, for people; empty without one.
const std::string& libcrypto_path();
// HMAC-SHA-256 (RFC 2104). Throws unavailable.
Digest hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> message);

// AES-256-GCM (NIST SP 800-38D) of one message in place: `body` is encrypted; the tag is of `head`, too, which is not.
// A key is used with each nonce once. Throw unavailable.
using GcmNonce = std::array<std::byte, 12>;
using GcmTag = std::array<std::byte, 16>;
GcmTag encrypt(const Digest& key, const GcmNonce& nonce, std::span<const std::byte> head, std::span<std::byte> body);
// False: not what was encrypted with this key and nonce. The body is lost then.
bool decrypt(const Digest& key, const GcmNonce& nonce, std::span<const std::byte> head, std::span<std::byte> body,
             std::span<const std::byte> tag);

// Takes the same time wherever the two differ. Of another length: false. Throws unavailable.
bool equal(std::span<const std::byte> a, std::span<const std::byte> b);

// From the kernel. Throws io.
void fill_with_random(std::span<std::byte> bytes);
// Not left out by the compiler.
void wipe(std::span<std::byte> bytes) noexcept;
std::string hexadecimal(std::span<const std::byte> bytes);

// A text that is wiped when it goes.
class Secret {
 public:
  Secret() = default;
  Secret(std::string text) : text_(std::move(text)) {}
  Secret(const char* text) : text_(text) {}
  Secret(const Secret&) = default;
  Secret& operator=(const Secret& other) {
    if (this != &other) {
      forget();
      text_ = other.text_;
    }
    return *this;
  }
  ~Secret() { forget(); }

  bool empty() const noexcept { return text_.empty(); }
  std::size_t size() const noexcept { return text_.size(); }
  std::span<const std::byte> bytes() const noexcept { return std::as_bytes(std::span(text_)); }
  void forget() noexcept {
    wipe(std::as_writable_bytes(std::span(text_)));
    text_.clear();
  }

 private:
  std::string text_;
};

}  // namespace waywiser
