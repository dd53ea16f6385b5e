#include "waywiser/comm/data_type.hpp"

#include <array>
#include <bit>
#include <string>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr std::array<std::string_view, data_types> type_names{"float64", "float32", "float16", "bfloat16", "int8",
                                                              "int16",   "int32",   "int64",   "uint8"};
constexpr std::array<std::string_view, reduce_ops> op_names{"sum", "prod", "min", "max", "avg"};

template <typename Value, std::size_t count>
Value parse(std::string_view text, const std::array<std::string_view, count>& names, const char* what) {
  std::string known;
  for (std::size_t i = 0; i < count; ++i) {
    if (names[i] == text) return static_cast<Value>(i);
    known += (i == 0 ? "" : ", ") + std::string(names[i]);
  }
  throw Error(ErrorKind::invalid_input,
              "'" + std::string(text.substr(0, 40)) + "' is no " + what + "; there are " + known);
}

}  // namespace

std::string_view name(DataType type) noexcept { return type_names[static_cast<std::size_t>(type)]; }
std::string_view name(ReduceOp op) noexcept { return op_names[static_cast<std::size_t>(op)]; }

DataType parse_data_type(std::string_view text) { return parse<DataType>(text, type_names, "data type"); }
ReduceOp parse_reduce_op(std::string_view text) { return parse<ReduceOp>(text, op_names, "reduction"); }

float to_float(Bfloat16 value) noexcept { return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16); }

Bfloat16 to_bfloat16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {static_cast<std::uint16_t>((bits >> 16) | 0x40u)};  // stays a NaN
  return {static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

float to_float(Float16 value) noexcept {
  const std::uint32_t sign = (value.bits & 0x8000u) << 16;
  const std::uint32_t magnitude = value.bits & 0x7fffu;
  if (magnitude >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
  // As a float with the exponent of a half: 2^112 puts it right, subnormal numbers too.
  const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(scaled));
}

Float16 to_float16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  const auto with_sign = [sign](std::uint32_t half) { return Float16{static_cast<std::uint16_t>(sign | half)}; };
  if (magnitude > 0x7f800000u) return with_sign(0x7e00u | ((magnitude >> 13) & 0x3ffu));
  if (magnitude >= 0x47800000u) return with_sign(0x7c00u);  // 65536 and above
  if (magnitude < 0x38800000u) {
    // Subnormal: adding 0.5 lets the float's own rounding drop the bits that a half has not.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return with_sign(std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u);
  }
  return with_sign((magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13);
}

}  // namespace waywiser
