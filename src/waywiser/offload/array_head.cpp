#include "waywiser/offload/array_head.hpp"

#include <algorithm>
#include <string>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/message/wire.hpp"
#include "waywiser/offload/array_head_wire.hpp"

namespace waywiser {
namespace {

constexpr std::uint8_t bools = 0x80;

// Lengths of 0 count as 1, so that the product of the others is bounded too.
std::string problem_of(const ArrayHead& head) {
  if (head.shape.size() > most_dimensions) return std::to_string(head.shape.size()) + " dimensions";
  Bytes bytes = bytes_of(head.type);
  for (const std::uint64_t length : head.shape) {
    if (length > largest_remote_array / bytes) return "an array of more bytes than any memory has";
    bytes *= std::max<std::uint64_t>(length, 1);
  }
  return "";
}

}  // namespace

std::uint64_t ArrayHead::elements() const noexcept {
  std::uint64_t count = 1;
  for (const std::uint64_t length : shape) count *= length;
  return count;
}

std::string type_text(const ArrayHead& head) { return head.of_bools ? "bool" : std::string(name(head.type)); }

std::string why_no_room(const ArrayHead& head, DataType type, std::uint64_t count) {
  if (head.type == type && head.elements() == count) return "";
  return "an array of " + std::to_string(head.elements()) + " " + std::string(name(head.type)) + " for room of " +
         std::to_string(count) + " " + std::string(name(type));
}

void check(const ArrayHead& head) {
  if (const std::string problem = problem_of(head); !problem.empty()) throw Error(ErrorKind::invalid_input, problem);
}

void write(WireWriter& writer, const ArrayHead& head) {
  writer.number(static_cast<std::uint8_t>(static_cast<unsigned>(head.type) | (head.of_bools ? bools : 0u)));
  writer.number(static_cast<std::uint8_t>(head.shape.size()));
  for (const std::uint64_t length : head.shape) writer.number(length);
}

ArrayHead read_array_head(WireReader& reader) {
  ArrayHead head;
  const auto type = reader.number<std::uint8_t>();
  head.of_bools = (type & bools) != 0;
  head.type = static_cast<DataType>(type & ~bools);
  if ((type & ~bools) >= data_types || (head.of_bools && head.type != DataType::uint8))
    reader.refuse("an unknown type, " + std::to_string(type));
  const auto dimensions = reader.number<std::uint8_t>();
  if (dimensions > most_dimensions) reader.refuse(std::to_string(dimensions) + " dimensions");
  for (int i = 0; i < dimensions; ++i) head.shape.push_back(reader.number<std::uint64_t>());
  if (const std::string problem = problem_of(head); !problem.empty()) reader.refuse(problem);
  return head;
}

}  // namespace waywiser
