#if defined(__x86_64__)
#include "waywiser/transport/courier/packet_lines.hpp"

#include <immintrin.h>

namespace waywiser {
namespace {

constexpr unsigned packets_per_line = 4, line_data = packets_per_line * packet_bytes;
constexpr __mmask16 first_twelve = 0x0fff, each_fourth = 0x8888, others = 0x7777;

bool possible() {
  static const bool known = __builtin_cpu_supports("avx512f") != 0;
  return known;
}

__attribute__((target("avx512f"))) unsigned write_lines(Packet* packets, const std::byte* source, unsigned bytes,
                                                        std::uint32_t number) {
  const __m512i places = _mm512_set_epi32(0, 11, 10, 9, 0, 8, 7, 6, 0, 5, 4, 3, 0, 2, 1, 0);
  const __m512i numbers = _mm512_set1_epi32(static_cast<int>(number));
  unsigned count = 0;
  for (; bytes >= line_data; bytes -= line_data, source += line_data, count += packets_per_line) {
    const __m512i words = _mm512_maskz_loadu_epi32(first_twelve, source);
    _mm512_store_si512(packets + count, _mm512_mask_permutexvar_epi32(numbers, others, places, words));
  }
  return count;
}

__attribute__((target("avx512f"))) unsigned read_lines(const Packet* packets, std::byte* to, unsigned bytes,
                                                       std::uint32_t number) {
  const __m512i places = _mm512_set_epi32(0, 0, 0, 0, 14, 13, 12, 10, 9, 8, 6, 5, 4, 2, 1, 0);
  const __m512i numbers = _mm512_set1_epi32(static_cast<int>(number));
  unsigned count = 0;
  for (; bytes >= line_data; bytes -= line_data, to += line_data, count += packets_per_line) {
    const __m512i words = *reinterpret_cast<const volatile __m512i*>(packets + count);
    if (_mm512_mask_cmpneq_epi32_mask(each_fourth, words, numbers) != 0) break;
    _mm512_mask_storeu_epi32(to, first_twelve, _mm512_maskz_permutexvar_epi32(first_twelve, places, words));
  }
  return count;
}

}  // namespace

unsigned read_packet_lines(const Packet* packets, std::byte* to, unsigned bytes, std::uint32_t number) {
  return possible() ? read_lines(packets, to, bytes, number) : 0;
}

unsigned write_packet_lines(Packet* packets, const std::byte* source, unsigned bytes, std::uint32_t number) {
  return possible() ? write_lines(packets, source, bytes, number) : 0;
}

void demote_lines(const Packet* packets, unsigned count) {
  for (unsigned i = 0; i < count; i += packets_per_line)
    asm volatile("cldemote (%0)" : : "r"(packets + i) : "memory");  // nothing to a processor that does not know it
}

}  // namespace waywiser
#endif
