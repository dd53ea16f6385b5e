#include "waywiser/comm/data_type.hpp"

#include <array>
#include <string>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr std::array<std::string_view, data_types> type_names{
    "float64", "float32", "float16", "bfloat16", "int8",      "int16",      "int32",         "int64",
    "uint8",   "uint16",  "uint32",  "uint64",   "complex64", "complex128", "float8_e4m3fn", "float8_e5m2"};
constexpr std::array<std::string_view, reduce_ops> op_names{"sum", "prod", "min",  "max", "avg", "band",
                                                            "bor", "bxor", "land", "lor", "lxor"};

template <typename Value, std::size_t count>
Value parse(std::string_view text, const std::array<std::string_view, count>& names, const char* what) {
  std::string known;
  for (std::size_t i = 0; i < count; ++i) {
    if (names[i] == text) return static_cast<Value>(i);
    known += (i == 0 ? "" : ", ") + std::string(names[i]);
  }
  throw Error(ErrorKind::invalid_input, quoted(text, 40) + " is no " + what + "; there are " + known);
}

}  // namespace

std::string_view name(DataType type) noexcept { return type_names[static_cast<std::size_t>(type)]; }
std::string_view name(ReduceOp op) noexcept { return op_names[static_cast<std::size_t>(op)]; }

DataType parse_data_type(std::string_view text) { return parse<DataType>(text, type_names, "data type"); }
std::string why_no_reduction(DataType type, ReduceOp op) {
  return "there is no " + std::string(name(op)) + " of " + std::string(name(type)) +
         (is_arithmetic(op) ? ", which has no order" : ", which is no integer");
}
void check_reduction(DataType type, ReduceOp op) {
  if (!has_reduction(type, op)) throw Error(ErrorKind::invalid_input, why_no_reduction(type, op));
}

ReduceOp parse_reduce_op(std::string_view text) { return parse<ReduceOp>(text, op_names, "reduction"); }

}  // namespace waywiser
