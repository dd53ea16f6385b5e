#pragma once

#include <string>

namespace waywiser {

// What a failed operation on its GPU does to a rank: its kernels trap, and every later call on the GPU raises; they
// end, what they should have brought is spoilt, and the GPU's context stays; or the process ends.
enum class OnFailure { trap, raise, abort };
// "trap", "raise" or "abort"; throws invalid_input.
[[gnu::visibility("default")]] OnFailure parse_on_failure(const std::string& text);

}  // namespace waywiser
