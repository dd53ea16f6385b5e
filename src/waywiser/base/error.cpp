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

void refuse_input(std::string_view what, const std::string& why) {
  std::string line = std::string(what) + ": " + why;
  for (char& c : line)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  throw Error(ErrorKind::invalid_input, line);
}

std::string last_system_error() { return std::generic_category().message(errno); }

}  // namespace waywiser
