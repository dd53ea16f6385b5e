#include "waywiser/base/error.hpp"

#include <cerrno>
#include <system_error>

namespace waywiser {

std::string_view name(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::invalid_input: return "invalid input";
    case ErrorKind::unavailable: return "unavailable";
    case ErrorKind::timeout: return "timeout";
    case ErrorKind::device: return "device";
    case ErrorKind::io: return "io";
    case ErrorKind::corrupt: return "corrupt";
    case ErrorKind::interrupted: return "interrupted";
  }
  return "unknown";
}

// Control characters: below space, delete, and U+0080 to U+009F, which terminals obey too.
std::string in_one_line(std::string_view text) {
  std::string line(text);
  for (std::size_t i = 0; i < line.size(); ++i) {
    const auto byte = [&](std::size_t at) { return at < line.size() ? static_cast<unsigned char>(line[at]) : 0; };
    if (byte(i) < 0x20 || byte(i) == 0x7f) line[i] = ' ';
    if (byte(i) == 0xc2 && byte(i + 1) >= 0x80 && byte(i + 1) <= 0x9f) line.replace(i, 2, " ");
  }
  return line;
}

std::string quoted(std::string_view text, std::size_t most) { return "'" + in_one_line(text.substr(0, most)) + "'"; }

void refuse_input(std::string_view what, const std::string& why) {
  throw Error(ErrorKind::invalid_input, in_one_line(std::string(what) + ": " + why));
}

std::string last_system_error() { return std::generic_category().message(errno); }

}  // namespace waywiser
