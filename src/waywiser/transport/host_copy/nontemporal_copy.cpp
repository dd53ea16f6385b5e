#if defined(__x86_64__)
#include "waywiser/transport/host_copy/nontemporal_copy.hpp"

#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace waywiser {
namespace {

// The three loops differ in the type of one vector only; an intrinsic must be inlined into a function of its target.
void vectors_of_16(std::byte* to, const std::byte* from, Bytes bytes) {
  for (Bytes at = 0; at < bytes; at += 16)
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + at), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at)));
}

__attribute__((target("avx2"))) void vectors_of_32(std::byte* to, const std::byte* from, Bytes bytes) {
  for (Bytes at = 0; at < bytes; at += 32)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + at),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + at)));
}

__attribute__((target("avx512f"))) void vectors_of_64(std::byte* to, const std::byte* from, Bytes bytes) {
  for (Bytes at = 0; at < bytes; at += 64)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + at),
                        _mm512_loadu_si512(reinterpret_cast<const void*>(from + at)));
}

unsigned widest() {
  for (const unsigned width : {64u, 32u})
    if (nontemporal_width_available(width)) return width;
  return 16;
}

}  // namespace

std::optional<std::string> why_no_nontemporal_copy() { return {}; }

bool nontemporal_width_available(unsigned width) {
  return width == 16 || (width == 32 && __builtin_cpu_supports("avx2")) ||
         (width == 64 && __builtin_cpu_supports("avx512f"));
}

void nontemporal_copy_of_width(unsigned width, std::byte* destination, const std::byte* source, Bytes bytes) {
  const Bytes misaligned = reinterpret_cast<std::uintptr_t>(destination) % width;
  const Bytes head = std::min(bytes, misaligned == 0 ? 0 : width - misaligned);
  if (head != 0) std::memcpy(destination, source, head);
  const Bytes body = (bytes - head) / width * width;
  auto* const loop = width == 64 ? vectors_of_64 : width == 32 ? vectors_of_32 : vectors_of_16;
  loop(destination + head, source + head, body);
  const Bytes done = head + body;
  if (done != bytes) std::memcpy(destination + done, source + done, bytes - done);
  _mm_sfence();
}

void nontemporal_copy(std::byte* destination, const std::byte* source, Bytes bytes) {
  static const unsigned width = widest();
  nontemporal_copy_of_width(width, destination, source, bytes);
}

}  // namespace waywiser
#endif
