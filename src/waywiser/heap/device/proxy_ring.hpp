#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "waywiser/kernels/device_code.hpp"

namespace waywiser::one_sided {

// How many accesses of one rank may be under way by its proxy, and the most bytes of one; longer ones come in pieces.
inline constexpr std::uint64_t proxy_slots = 64, proxy_piece = 32 << 10;

// What is moved: bytes to the other rank or from it, or words of packets, which it stores as packets.
enum class ProxyMove : std::uint32_t { put, get, packets };

// What is done to a word of the other rank after that.
enum class WordOp : std::uint32_t { none, set, add, swap, compare_swap, bit_and, bit_or, bit_xor, read };
enum class WordType : std::uint32_t { bits32, bits64, float32, float64 };

// One access, as a kernel asks its host for it and as it travels. Offsets are from the beginning of a rank's memory.
struct alignas(64) ProxyRequest {
  std::uint64_t number = 0;  // 1 + its ticket: the host's
  std::int32_t rank = 0;
  ProxyMove move = ProxyMove::put;
  std::uint64_t offset = 0;               // of the first element
  std::uint64_t count = 0;                // of elements; 0: nothing is moved
  std::uint64_t element = 1, apart = 1;   // bytes of one; bytes from one to the next at the other rank
  std::uint64_t word = 0;                 // the offset of the word
  std::uint64_t value = 0, expected = 0;  // `value`: the number of packets too
  WordOp op = WordOp::none;
  WordType type = WordType::bits64;
  std::uint32_t answered = 0;   // the kernel waits for what was read, and gives the slot back itself
  std::uint32_t after_all = 0;  // only when all earlier accesses to other ranks are complete

  WAYWISER_DEVICE std::uint64_t bytes() const { return count * element; }
};

struct alignas(64) ProxySlot {
  ProxyRequest request;
  std::uint64_t asked = 0;     // 1 + the ticket of the request; written after it
  std::uint64_t free_for = 0;  // the ticket that may use it
  std::uint64_t done = 0;      // 1 + the ticket that has been answered
  std::uint64_t result = 0;    // the word before the operation
};

// In host memory, between the kernels of one rank and its progress thread. Whoever takes ticket t uses slot
// t % proxy_slots, when it is free.
struct alignas(64) ProxyRing {
  std::uint64_t completed = 0;  // all accesses with lower tickets are complete
  ProxySlot slots[proxy_slots];
  std::byte pieces[proxy_slots][proxy_piece];  // what is put, or was got

  WAYWISER_DEVICE ProxySlot& slot(std::uint64_t ticket) { return slots[ticket % proxy_slots]; }
  WAYWISER_DEVICE std::byte* piece(std::uint64_t ticket) { return pieces[ticket % proxy_slots]; }
};

template <typename T>
WAYWISER_DEVICE constexpr WordType word_type() {
  constexpr bool is_float = std::is_floating_point_v<T>;
  if constexpr (sizeof(T) == 4) return is_float ? WordType::float32 : WordType::bits32;
  return is_float ? WordType::float64 : WordType::bits64;
}

}  // namespace waywiser::one_sided
