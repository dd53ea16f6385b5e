#include "waywiser/base/environment.hpp"

#include <cstdlib>

namespace waywiser {
std::optional<std::string> environment(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

std::optional<std::string> library_override(std::string_view library) {
  std::string name = "WAYWISER_LIB";
  for (const char c : library) name += static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return environment(name);
}

}  // namespace waywiser
