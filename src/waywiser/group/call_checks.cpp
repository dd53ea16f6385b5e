#include "waywiser/group/call_checks.hpp"

#include "waywiser/base/error.hpp"

namespace waywiser {

void refuse(CallKind kind, const std::string& why) {
  throw Error(ErrorKind::invalid_input, std::string(name(kind)) + ": " + why);
}

void check_types(CallKind kind, ConstElements input, ConstElements output) {
  if (input.type != output.type)
    refuse(kind, "input of " + std::string(name(input.type)) + ", output of " + std::string(name(output.type)));
}

void check_reduces(CallKind kind, ConstElements input, ConstElements output, ReduceOp op) {
  check_types(kind, input, output);
  if (!has_reduction(input.type, op)) refuse(kind, why_no_reduction(input.type, op));
}

void check_count(CallKind kind, const char* which, std::size_t count, std::size_t expected) {
  if (count != expected)
    refuse(kind, std::string(which) + " has " + std::to_string(count) + " elements, " + std::to_string(expected) +
                     " are needed");
}

}  // namespace waywiser
