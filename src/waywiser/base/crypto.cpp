#include "waywiser/base/crypto.hpp"

#include <string.h>
#include <sys/random.h>

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

// The same in OpenSSL 1.1 and 3.
struct Libcrypto {
  Libcrypto() : library(candidates()) {
    sha256 = library.find<const void*()>("EVP_sha256");
    hmac = library.find<unsigned char*(const void*, const void*, int, const unsigned char*, std::size_t, unsigned char*,
                                       unsigned*)>("HMAC");
    compare = library.find<int(const void*, const void*, std::size_t)>("CRYPTO_memcmp");
    if (sha256 != nullptr && hmac != nullptr && compare != nullptr) return;
    why_not = library.loaded() ? library.name() + " is no OpenSSL 1.1 or 3" : library.why_not();
    why_not += " (install OpenSSL's libcrypto, libssl3 on Debian, or name it in WAYWISER_LIBCRYPTO)";
  }

  DynamicLibrary library;
  const void* (*sha256)() = nullptr;
  unsigned char* (*hmac)(const void*, const void*, int, const unsigned char*, std::size_t, unsigned char*,
                         unsigned*) = nullptr;
  int (*compare)(const void*, const void*, std::size_t) = nullptr;
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
