#pragma once

#include <string_view>

namespace waywiser {

// Of this build: "0.1.0".
[[gnu::visibility("default")]] std::string_view version() noexcept;

}  // namespace waywiser
