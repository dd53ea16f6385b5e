#include "waywiser/offload/functions.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "waywiser/base/error.hpp"
#include "waywiser/kernels/elementwise.hpp"

namespace waywiser {
namespace {

using Kind = Elementwise::Kind;

constexpr std::array<std::string_view, 4> builtin_names{"add", "multiply", "repeat_add", "scale"};
constexpr double most_times = 100'000;

std::optional<ElementType> element_type(const ArrayHead& head) {
  switch (head.type) {
    case DataType::float64: return ElementType::float64;
    case DataType::float32: return ElementType::float32;
    case DataType::int64: return ElementType::int64;
    case DataType::int32: return ElementType::int32;
    default: return {};
  }
}

[[noreturn]] void refuse_call(const std::string& why) { throw Error(ErrorKind::invalid_input, why); }

double number_of(const requests::Run& call, std::string_view name, double usual) {
  for (const auto& [given, value] : call.numbers)
    if (given == name) return value;
  return usual;
}

void check_numbers(const requests::Run& call, std::string_view known) {
  for (const auto& [name, value] : call.numbers)
    if (name != known) refuse_call("it takes no number '" + name + "'");
}

Elementwise operation_of(const requests::Run& call, const ArrayHead& head) {
  Elementwise operation;
  const auto type = element_type(head);
  if (!type) refuse_call("arrays of " + std::string(name(head.type)) + ": it takes float64, float32, int64 and int32");
  operation.type = *type;
  if (call.function == "scale") {
    check_numbers(call, "factor");
    operation.kind = Kind::scale;
    operation.factor = number_of(call, "factor", 1);
    if (*type != ElementType::float64 && *type != ElementType::float32)
      refuse_call("an array of " + std::string(name(head.type)) + ": it takes float64 and float32");
    return operation;
  }
  operation.kind = call.function == "multiply" ? Kind::multiply : Kind::add;
  check_numbers(call, call.function == "repeat_add" ? "times" : "");
  const double times = number_of(call, "times", 1);
  if (!(times >= 1 && times <= most_times && times == std::floor(times)))
    refuse_call("times is a whole number from 1 to " + std::to_string(static_cast<long>(most_times)));
  operation.times = static_cast<std::uint64_t>(times);
  return operation;
}

std::string shape_text(const ArrayHead& head) {
  std::string text = "(";
  for (const std::uint64_t length : head.shape) text += (text.size() > 1 ? ", " : "") + std::to_string(length);
  return text + ") of " + std::string(name(head.type));
}

}  // namespace

std::span<const std::string_view> builtin_functions() { return builtin_names; }

bool is_builtin(std::string_view name) { return std::ranges::find(builtin_names, name) != builtin_names.end(); }

ArrayHead check_builtin(const requests::Run& call, std::span<const HeldArray> arrays) {
  const std::size_t wanted = call.function == "scale" ? 1 : 2;
  if (arrays.size() != wanted)
    refuse_call("it takes " + std::to_string(wanted) + " arrays, not " + std::to_string(arrays.size()));
  const ArrayHead& head = arrays.front().head;
  if (arrays.back().head != head)
    refuse_call("arrays of unlike shapes or types: " + shape_text(head) + " and " + shape_text(arrays.back().head));
  static_cast<void>(operation_of(call, head));
  return head;
}

void enqueue_builtin(Stream& stream, const requests::Run& call, std::span<const HeldArray> arrays, Region result) {
  const ArrayHead& head = arrays.front().head;
  apply_elementwise(stream, operation_of(call, head), head.elements(), result, arrays.front().memory,
                    arrays.back().memory);
}

}  // namespace waywiser
