#pragma once

#include <string_view>

namespace waywiser {

// The version of this build: "0.1.0".
[[gnu::visibility("default")]] std::string_view version() noexcept;

}  // namespace waywiser
