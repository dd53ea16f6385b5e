#pragma once

#include <cstddef>
#include <string>

#include "waywiser/comm/elements.hpp"
#include "waywiser/comm/message/call.hpp"

// What is wrong with the arrays of a collective, before the call has a number. All throw invalid_input that names it.
namespace waywiser {

[[noreturn]] void refuse(CallKind kind, const std::string& why);
void check_types(CallKind kind, ConstElements input, ConstElements output);
void check_reduces(CallKind kind, ConstElements input, ConstElements output, ReduceOp op);
// `which`: for example "the output".
void check_count(CallKind kind, const char* which, std::size_t count, std::size_t expected);

}  // namespace waywiser
