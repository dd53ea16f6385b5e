#pragma once

#include <string>

namespace waywiser {

// What a rank does after a failed operation on its GPU.
enum class OnFailure { raise, abort };
// "raise" or "abort"; throws invalid_input.
[[gnu::visibility("default")]] OnFailure parse_on_failure(const std::string& text);

}  // namespace waywiser
