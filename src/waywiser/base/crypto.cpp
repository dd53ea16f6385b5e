#include "waywiser/base/crypto.hpp"

#include <string.h>
#include <sys/random.h>

#include <algorithm>
#include <fstream>
#include <vector>

#include "waywiser/base/dynamic_library.hpp"
#include "waywiser/base/environment.hpp"
#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

std::string mapped_libcrypto() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (const auto start = line.find('/'); start != std::string::npos)
      if (line.substr(line.rfind('/') + 1).starts_with("libcrypto.so")) return line.substr(start);
  return {};
}

std::vector<std::string> candidates() {
  if (const auto named = library_override("crypto")) return {*named};
  std::vector<std::string> names{"libcrypto.so.3", "libcrypto.so.1.1"};
  if (const std::string mapped = mapped_libcrypto(); !mapped.empty()) names.push_back(mapped);
  return names;
}

// Equal in OpenSSL 1.1 and 3.
struct Libcrypto {
  Libcrypto() : library(candidates()) {
    sha256 = library.find<const void*()>("EVP_sha256");
    hmac = library.find<unsigned char*(const void*, const void*, int, const unsigned char*, std::size_t, unsigned char*,
                                       unsigned*)>("HMAC");
    compare = library.find<int(const void*, const void*, std::size_t)>("CRYPTO_memcmp");
    gcm = library.find<const void*()>("EVP_aes_256_gcm");
    cipher_new = library.find<void*()>("EVP_CIPHER_CTX_new");
    cipher_free = library.find<void(void*)>("EVP_CIPHER_CTX_free");
    cipher_control = library.find<int(void*, int, int, void*)>("EVP_CIPHER_CTX_ctrl");
    cipher_begin =
        library.find<int(void*, const void*, void*, const std::byte*, const std::byte*, int)>("EVP_CipherInit_ex");
    cipher_update = library.find<int(void*, std::byte*, int*, const std::byte*, int)>("EVP_CipherUpdate");
    cipher_end = library.find<int(void*, std::byte*, int*)>("EVP_CipherFinal_ex");
    if (sha256 != nullptr && hmac != nullptr && compare != nullptr && gcm != nullptr && cipher_new != nullptr &&
        cipher_free != nullptr && cipher_control != nullptr && cipher_begin != nullptr && cipher_update != nullptr &&
        cipher_end != nullptr)
      return;
    why_not = library.loaded() ? library.name() + " is no OpenSSL 1.1 or 3" : library.why_not();
    why_not += " (install OpenSSL's libcrypto, libssl3 on Debian, or name it in WAYWISER_LIBCRYPTO)";
  }

  DynamicLibrary library;
  const void* (*sha256)() = nullptr;
  unsigned char* (*hmac)(const void*, const void*, int, const unsigned char*, std::size_t, unsigned char*,
                         unsigned*) = nullptr;
  int (*compare)(const void*, const void*, std::size_t) = nullptr;
  const void* (*gcm)() = nullptr;
  void* (*cipher_new)() = nullptr;
  void (*cipher_free)(void*) = nullptr;
  int (*cipher_control)(void*, int, int, void*) = nullptr;
  int (*cipher_begin)(void*, const void*, void*, const std::byte*, const std::byte*, int) = nullptr;
  int (*cipher_update)(void*, std::byte*, int*, const std::byte*, int) = nullptr;
  int (*cipher_end)(void*, std::byte*, int*) = nullptr;
  std::string why_not;
};

const Libcrypto& libcrypto() {
  static const Libcrypto library;
  return library;
}

const Libcrypto& usable_libcrypto() {
  if (!libcrypto().why_not.empty()) throw Error(ErrorKind::unavailable, libcrypto().why_not);
  return libcrypto();
}

// Numbers of openssl/evp.h, the same in 1.1 and 3.
constexpr int gcm_get_tag = 0x10, gcm_set_tag = 0x11;

// One message.
class Cipher {
 public:
  Cipher() : library_(usable_libcrypto()), context_(library_.cipher_new()) {}
  Cipher(const Cipher&) = delete;
  Cipher& operator=(const Cipher&) = delete;
  ~Cipher() { library_.cipher_free(context_); }

  bool begin(const Digest& key, const GcmNonce& nonce, bool encrypts) {
    return context_ != nullptr &&
           library_.cipher_begin(context_, library_.gcm(), nullptr, key.data(), nonce.data(), encrypts ? 1 : 0) == 1;
  }
  bool pass(std::span<const std::byte> head, std::span<std::byte> body) {
    int length = 0;
    const auto all = [&](std::byte* out, std::span<const std::byte> bytes) {
      return bytes.empty() ||
             library_.cipher_update(context_, out, &length, bytes.data(), static_cast<int>(bytes.size())) == 1;
    };
    return all(nullptr, head) && all(body.data(), body);
  }
  bool control(int what, std::size_t bytes, void* data) {
    return library_.cipher_control(context_, what, static_cast<int>(bytes), data) == 1;
  }
  bool end() {
    int length = 0;
    std::array<std::byte, 16> rest{};  // of GCM always empty
    return library_.cipher_end(context_, rest.data(), &length) == 1;
  }

 private:
  const Libcrypto& library_;
  void* context_;
};

}  // namespace

const std::string& why_no_crypto() { return libcrypto().why_not; }

const std::string& libcrypto_path() { return libcrypto().library.name(); }

Digest hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> message) {
  const Libcrypto& library = usable_libcrypto();
  Digest digest{};
  unsigned length = 0;
  if (library.hmac(library.sha256(), key.data(), static_cast<int>(key.size()),
                   reinterpret_cast<const unsigned char*>(message.data()), message.size(),
                   reinterpret_cast<unsigned char*>(digest.data()), &length) == nullptr ||
      length != digest.size())
    throw Error(ErrorKind::unavailable, library.library.name() + " does not compute HMAC-SHA-256");
  return digest;
}

GcmTag encrypt(const Digest& key, const GcmNonce& nonce, std::span<const std::byte> head, std::span<std::byte> body) {
  GcmTag tag{};
  Cipher cipher;
  if (!cipher.begin(key, nonce, true) || !cipher.pass(head, body) || !cipher.end() ||
      !cipher.control(gcm_get_tag, tag.size(), tag.data()))
    throw Error(ErrorKind::unavailable, libcrypto_path() + " does not compute AES-256-GCM");
  return tag;
}

bool decrypt(const Digest& key, const GcmNonce& nonce, std::span<const std::byte> head, std::span<std::byte> body,
             std::span<const std::byte> tag) {
  GcmTag told{};
  if (tag.size() != told.size()) return false;
  std::ranges::copy(tag, told.begin());
  Cipher cipher;
  if (!cipher.begin(key, nonce, false))
    throw Error(ErrorKind::unavailable, libcrypto_path() + " does not compute AES-256-GCM");
  return cipher.pass(head, body) && cipher.control(gcm_set_tag, told.size(), told.data()) && cipher.end();
}

bool equal(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && usable_libcrypto().compare(a.data(), b.data(), a.size()) == 0;
}

void fill_with_random(std::span<std::byte> bytes) {
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw Error(ErrorKind::io, "no random numbers: " + last_system_error());
}

void wipe(std::span<std::byte> bytes) noexcept { ::explicit_bzero(bytes.data(), bytes.size()); }

std::string hexadecimal(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes)
    for (const int shift : {4, 0}) text += "0123456789abcdef"[(std::to_integer<unsigned>(byte) >> shift) & 15u];
  return text;
}

}  // namespace waywiser
