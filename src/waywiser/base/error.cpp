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

std::string in_one_line(std::string_view text) {
  std::string line(text);
  for (char& c : line)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  return line;
}

std::string quoted(std::string_view text, std::size_t most) { return "'" + in_one_line(text.substr(0, most)) + "'"; }

void refuse_input(std::string_view what, const std::string& why) {
  throw Error(ErrorKind::invalid_input, in_one_line(std::string(what) + ": " + why));
}

std::string last_system_error() { return std::generic_category().message(errno); }

}  // namespace waywiser
