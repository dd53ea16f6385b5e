#include "waywiser/table/block_hash.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cstring>

#include "waywiser/table/mix.hpp"

namespace waywiser {
namespace {

constexpr Bytes line_bytes = 64;
constexpr std::uint64_t key_step = 0xc2b2ae3d27d4eb4full;  // between the keys of a lane in two lines
constexpr std::uint64_t first_keys[] = {spread(1), spread(2), spread(3), spread(4),
                                        spread(5), spread(6), spread(7), spread(8)};

// From line `first` of the block on. `into`: where they are copied, nullptr: nowhere.
void take_words(BlockHash::Lanes& lanes, std::uint64_t first, const std::byte* from, std::byte* into, Bytes lines) {
  if (into != nullptr) std::memcpy(into, from, lines * line_bytes);
  for (Bytes line = first; line < first + lines; ++line, from += line_bytes)
    for (std::size_t lane = 0; lane < 8; ++lane) {
      std::uint64_t word;
      std::memcpy(&word, from + 8 * lane, 8);
      const std::uint64_t keyed = word ^ (first_keys[lane] + line * key_step);
      lanes.products[lane] += (keyed & 0xffffffffu) * (keyed >> 32);
      lanes.sums[lane] += word;
    }
}

#if defined(__x86_64__)
// The same.
template <bool copies>
[[gnu::target("avx2")]] void take_vectors(BlockHash::Lanes& lanes, std::uint64_t first, const std::byte* from,
                                          std::byte* into, Bytes lines) {
  const __m256i step = _mm256_set1_epi64x(static_cast<long long>(key_step));
  const __m256i before = _mm256_set1_epi64x(static_cast<long long>(first * key_step));
  __m256i keys[2], products[2], sums[2];
  for (std::size_t half = 0; half < 2; ++half) {
    keys[half] = _mm256_add_epi64(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(first_keys + 4 * half)), before);
    products[half] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(lanes.products + 4 * half));
    sums[half] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(lanes.sums + 4 * half));
  }
  for (; lines > 0; --lines)
    for (std::size_t half = 0; half < 2; ++half, from += 32) {
      const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
      if constexpr (copies) {
        _mm256_store_si256(reinterpret_cast<__m256i*>(into), words);
        into += 32;
      }
      const __m256i keyed = _mm256_xor_si256(words, keys[half]);
      products[half] = _mm256_add_epi64(products[half], _mm256_mul_epu32(keyed, _mm256_srli_epi64(keyed, 32)));
      sums[half] = _mm256_add_epi64(sums[half], words);
      keys[half] = _mm256_add_epi64(keys[half], step);
    }
  for (std::size_t half = 0; half < 2; ++half) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(lanes.products + 4 * half), products[half]);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(lanes.sums + 4 * half), sums[half]);
  }
}
#endif

}  // namespace

bool has_wide_vectors() {
#if defined(__x86_64__)
  static const bool known = __builtin_cpu_supports("avx2") != 0;
  return known;
#else
  return false;
#endif
}

void BlockHash::take(Bytes at, const std::byte* from, std::byte* into, Bytes bytes) {
  auto* loop = take_words;
#if defined(__x86_64__)
  if (wide_) loop = into == nullptr ? take_vectors<false> : take_vectors<true>;
#endif
  loop(lanes_, at / line_bytes, from, into, bytes / line_bytes);
}

void BlockHash::add(Bytes at, const std::byte* data, Bytes bytes) {
  take(at, data, nullptr, bytes);
  if (const Bytes rest = bytes % line_bytes; rest > 0) {
    std::byte last[line_bytes] = {};
    std::memcpy(last, data + bytes - rest, rest);
    take(at + bytes - rest, last, nullptr, line_bytes);
  }
  bytes_ += bytes;
}

void BlockHash::copy(Bytes at, std::byte* into, const std::byte* from, Bytes bytes) {
  take(at, from, into, bytes);
  bytes_ += bytes;
}

std::uint64_t BlockHash::value() const {
  std::uint64_t all = spread(bytes_);
  for (std::size_t lane = 0; lane < 8; ++lane) all = mixed(mixed(all, lanes_.products[lane]), lanes_.sums[lane]);
  return all;
}

std::uint64_t hash_of_block(const std::byte* data, Bytes bytes) {
  BlockHash hash;
  hash.add(0, data, bytes);
  return hash.value();
}

}  // namespace waywiser
