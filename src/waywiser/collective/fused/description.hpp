#pragma once

#include <cstdint>
#include <string>

#include "waywiser/collective/call.hpp"
#include "waywiser/comm/data_type.hpp"
#include "waywiser/kernels/device_code.hpp"

namespace waywiser::fused {

// What an operation of a rank is, as others see it: two operations with the same number must have the same word.
struct Description {
  // The number of a message where it is none of a collective.
  static constexpr std::uint32_t message = 15;

  std::uint32_t operation = message;
  DataType type = DataType::uint8;
  ReduceOp op = ReduceOp::sum;
  std::int32_t root = -1;
  std::uint64_t count = 0;

  std::uint64_t word() const;
  static Description of(std::uint64_t word);
  // Of a message: 31 bits, which stand beside its data. Both may be read, up to 67 million elements.
  std::uint32_t of_message() const;
  static Description from_message(std::uint32_t signature);
};

Description describe(const CollectiveCall& call, DataType type, ReduceOp op);
// "all_reduce #12 of 100 float32, sum"; of a message, which has no number: "8 uint8".
std::string text(const Description& description, std::uint64_t number);

// 32 bits of a description, in the upper half of a word.
WAYWISER_DEVICE constexpr std::uint64_t signature_of(std::uint64_t description) {
  std::uint64_t bits = (description ^ description >> 31) * 0x9e3779b97f4a7c15u;
  bits = (bits ^ bits >> 29) * 0xbf58476d1ce4e5b9u;
  return (bits ^ bits >> 32) & 0xffffffff00000000u;
}

// What stands beside the data of operation `number`, so that only the same operation of another rank fits to it. Of one
// signature, no two numbers have the same tag.
WAYWISER_DEVICE constexpr std::uint64_t tag_of(std::uint64_t number, std::uint64_t signature) {
  return number + signature;
}
// Its half that a packet has room for, beside the number.
WAYWISER_DEVICE constexpr std::uint32_t mark_of(std::uint64_t tag) {
  return static_cast<std::uint32_t>(tag) ^ static_cast<std::uint32_t>(tag >> 32);
}

// What a rank tells the others when it has waited for a while.
struct alignas(16) Announcement {
  std::uint64_t tag = 0, description = 0;

  // Whether a rank tells that its operation `number` is another one than `mine`. Half of a new one says nothing.
  WAYWISER_DEVICE bool is_unlike(std::uint64_t number, std::uint64_t mine) const {
    return description != mine && tag - signature_of(description) == number;
  }
};

}  // namespace waywiser::fused
