#pragma once

#include <string>

namespace waywiser {

struct ShuffleOptions;

[[noreturn]] void refuse_shuffle(const std::string& why);  // throws invalid_input
// Throws invalid_input for options that make no sense.
void check_options(const ShuffleOptions& options);

}  // namespace waywiser
