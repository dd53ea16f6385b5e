#pragma once

#include <cstdint>
#include <string>

#include "waywiser/collective/call.hpp"
#include "waywiser/comm/data_type.hpp"

namespace waywiser::on_stream {

// Describes a rank's operation by kernels or NCCL to the other ranks: two operations with the same number must have the
// same word.
struct Description {
  // Stands for a message in place of a collective.
  static constexpr std::uint32_t message = 15;
  // Stands for the places of a call's symmetric arrays, of which `count` is a hash.
  static constexpr std::uint32_t places = 14;
  static constexpr std::uint32_t symmetric = 31;  // in place of `cut`: between symmetric arrays

  std::uint32_t operation = message;
  DataType type = DataType::uint8;
  ReduceOp op = ReduceOp::sum;
  std::int32_t root = -1;
  std::uint64_t count = 0;
  // For an operation of several kernels: the bit width of a piece's size; else 0. Ranks that cut it into pieces of
  // different sizes are in differing operations.
  std::uint32_t cut = 0;

  std::uint64_t word() const;
  static Description of(std::uint64_t word);
  // For a message: 31 bits, stored beside its data. Both can be decoded, up to 67 million elements.
  std::uint32_t of_message() const;
  static Description from_message(std::uint32_t signature);
};

Description describe(const CollectiveCall& call, DataType type, ReduceOp op);
// "all_reduce #12 of 100 float32, sum"; for a message, which has no number: "8 uint8".
std::string text(const Description& description, std::uint64_t number);

}  // namespace waywiser::on_stream
