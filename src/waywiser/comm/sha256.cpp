#include "waywiser/comm/sha256.hpp"

#include <algorithm>
#include <bit>
#include <vector>

namespace waywiser {
namespace {

constexpr std::size_t block_bytes = 64;
using State = std::array<std::uint32_t, 8>;

constexpr State start{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
constexpr std::array<std::uint32_t, 64> constants{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::array<std::uint32_t, 64> expand(const std::byte* block) {
  std::array<std::uint32_t, 64> words{};
  for (std::size_t i = 0; i < 16; ++i)
    for (std::size_t byte = 0; byte < 4; ++byte)
      words[i] = (words[i] << 8) | std::to_integer<std::uint32_t>(block[4 * i + byte]);
  for (std::size_t i = 16; i < 64; ++i) {
    const std::uint32_t a = words[i - 15], b = words[i - 2];
    words[i] = words[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3)) + words[i - 7] +
               (std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10));
  }
  return words;
}

void mix(State& state, const std::byte* block) {
  const auto words = expand(block);
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t i = 0; i < 64; ++i) {
    const std::uint32_t first =
        h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + ((e & f) ^ (~e & g)) + constants[i] + words[i];
    const std::uint32_t second =
        (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + first;
    d = c;
    c = b;
    b = a;
    a = first + second;
  }
  const State round{a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < state.size(); ++i) state[i] += round[i];
}

// The end of the message, a bit 1, zeros, and the length in bits, in one or two blocks.
std::vector<std::byte> last_blocks(std::span<const std::byte> rest, std::uint64_t bits) {
  std::vector<std::byte> blocks(rest.size() + 9 <= block_bytes ? block_bytes : 2 * block_bytes);
  std::ranges::copy(rest, blocks.begin());
  blocks[rest.size()] = std::byte{0x80};
  for (std::size_t i = 0; i < 8; ++i) blocks[blocks.size() - 1 - i] = static_cast<std::byte>(bits >> (8 * i));
  return blocks;
}

}  // namespace

Digest sha256(std::span<const std::byte> message) {
  State state = start;
  const std::size_t whole = message.size() / block_bytes * block_bytes;
  for (std::size_t at = 0; at < whole; at += block_bytes) mix(state, message.data() + at);
  const auto end = last_blocks(message.subspan(whole), std::uint64_t{message.size()} * 8);
  for (std::size_t at = 0; at < end.size(); at += block_bytes) mix(state, end.data() + at);
  Digest digest{};
  for (std::size_t i = 0; i < digest.size(); ++i)
    digest[i] = static_cast<std::byte>(state[i / 4] >> (24 - 8 * (i % 4)));
  return digest;
}

Digest hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> message) {
  std::array<std::byte, block_bytes> padded{};
  if (key.size() > block_bytes)
    std::ranges::copy(sha256(key), padded.begin());
  else
    std::ranges::copy(key, padded.begin());
  std::vector<std::byte> inner, outer;
  for (const std::byte byte : padded) {
    inner.push_back(byte ^ std::byte{0x36});
    outer.push_back(byte ^ std::byte{0x5c});
  }
  inner.insert(inner.end(), message.begin(), message.end());
  const Digest digest = sha256(inner);
  outer.insert(outer.end(), digest.begin(), digest.end());
  return sha256(outer);
}

bool equal(const Digest& a, const Digest& b) noexcept {
  std::byte difference{};
  for (std::size_t i = 0; i < a.size(); ++i) difference |= a[i] ^ b[i];
  return difference == std::byte{};
}

std::string hexadecimal(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes)
    for (const int shift : {4, 0}) text += "0123456789abcdef"[(std::to_integer<unsigned>(byte) >> shift) & 15u];
  return text;
}

}  // namespace waywiser
