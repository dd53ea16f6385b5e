#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace flow {

// Replaces a file at once: whoever reads it, also after the machine has stopped at any moment, finds the old text or
// the new one. Throws io.
void write_durably(const std::filesystem::path& file, std::string_view text);
// Throws io.
std::string read_file(const std::filesystem::path& file);

}  // namespace flow
