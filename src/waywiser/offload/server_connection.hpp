#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "waywiser/base/json.hpp"
#include "waywiser/offload/serve_line.hpp"

namespace waywiser {

// The key in a file that only its owner reads: at least 64 hexadecimal digits, white space before and after them. An
// empty path: the usual file, waywiser/serve.key in the user's folder for configuration. Throws invalid_input.
std::vector<std::byte> read_serve_key(const std::filesystem::path& file);

// Connects to `waywiser serve`, asks, and waits `patience` for the answer; again until `deadline` while the server has
// too many strangers. Throws invalid_input if the server does not know the key, or with its words if it refuses; io if
// it cannot be reached; timeout.
std::pair<std::shared_ptr<ServeLine>, Json> ask_server(const std::string& address, std::span<const std::byte> key,
                                                       const Json& question, Seconds patience, Deadline deadline);

}  // namespace waywiser
