#pragma once

#include <cstdint>
#include <string>

#include "waywiser/collective/call.hpp"
#include "waywiser/comm/data_type.hpp"

namespace waywiser::on_stream {

// What an operation of a rank is, as others see it: two operations with the same number must have the same word.
struct Description {
  // The number of a message where it is none of a collective.
  static constexpr std::uint32_t message = 15;

  std::uint32_t operation = message;
  DataType type = DataType::uint8;
  ReduceOp op = ReduceOp::sum;
  std::int32_t root = -1;
  std::uint64_t count = 0;
  // Of an operation that several kernels carry out: the bits of the number of bytes of one; else 0. Ranks that cut it
  // into pieces of unlike sizes are in unlike operations.
  std::uint32_t cut = 0;

  std::uint64_t word() const;
  static Description of(std::uint64_t word);
  // Of a message: 31 bits, which stand beside its data. Both may be read, up to 67 million elements.
  std::uint32_t of_message() const;
  static Description from_message(std::uint32_t signature);
};

Description describe(const CollectiveCall& call, DataType type, ReduceOp op);
// "all_reduce #12 of 100 float32, sum"; of a message, which has no number: "8 uint8".
std::string text(const Description& description, std::uint64_t number);

}  // namespace waywiser::on_stream
