#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "waywiser/base/units.hpp"
#include "waywiser/comm/data_type.hpp"

namespace waywiser {

class WireReader;
class WireWriter;

// Type and shape of an array on a remote GPU, whose elements lie in C order.
struct ArrayHead {
  DataType type = DataType::uint8;
  bool of_bools = false;             // the elements are bools, one byte each: the type is uint8
  std::vector<std::uint64_t> shape;  // empty: one number

  std::uint64_t elements() const noexcept;
  Bytes bytes() const noexcept { return elements() * bytes_of(type); }
  bool operator==(const ArrayHead&) const = default;
};

inline constexpr std::size_t most_dimensions = 32;
inline constexpr Bytes largest_remote_array = Bytes{1} << 48;

std::string type_text(const ArrayHead& head);  // "bool" or the type's name
// Empty: the array fits into room of so many elements of a type. Otherwise what is wrong.
std::string why_no_room(const ArrayHead& head, DataType type, std::uint64_t count);
// Throws invalid_input: too many dimensions, or more bytes than any array has.
void check(const ArrayHead& head);
void write(WireWriter& writer, const ArrayHead& head);
// Throws invalid_input.
ArrayHead read_array_head(WireReader& reader);

}  // namespace waywiser
