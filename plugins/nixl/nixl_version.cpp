#include "nixl_version.hpp"

#include <link.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace waywiser_nixl {
namespace {

// Whose layout nixl_types.hpp declares.
constexpr std::array<std::string_view, 1> served_versions{"1.5.1"};

// No function of NIXL's tells its version. Its library of common parts has the words of a line of its log, and the
// version as the constant behind them.
constexpr std::string_view library = "libnixl_common.so";
constexpr std::string_view words{"NIXL version: \0", 15};

bool is_version(std::string_view text) {
  return std::count(text.begin(), text.end(), '.') == 2 && text.find_first_not_of("0123456789.") == text.npos;
}

std::string version_in(std::string_view constants) {
  for (std::size_t at = constants.find(words); at != constants.npos; at = constants.find(words, at + 1)) {
    std::string_view behind = constants.substr(at + words.size(), 64);
    behind.remove_prefix(std::min(behind.find_first_not_of('\0'), behind.size()));
    const std::string_view found = behind.substr(0, behind.find('\0'));
    if (is_version(found)) return std::string(found);
  }
  return {};
}

int look_into(dl_phdr_info* info, std::size_t, void* found) {
  const std::string_view name = info->dlpi_name == nullptr ? "" : info->dlpi_name;
  if (name.substr(name.rfind('/') + 1).substr(0, library.size()) != library) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || (part.p_flags & PF_R) == 0 || (part.p_flags & PF_W) != 0) continue;
    const auto* begin = reinterpret_cast<const char*>(info->dlpi_addr + part.p_vaddr);
    const std::string version = version_in({begin, part.p_filesz});
    if (version.empty()) continue;
    *static_cast<std::string*>(found) = version;
    return 1;
  }
  return 0;
}

}  // namespace

std::string loaded_version() {
  std::string version;
  dl_iterate_phdr(look_into, &version);
  return version;
}

std::string why_not_served(const std::string& version) {
  if (std::find(served_versions.begin(), served_versions.end(), version) != served_versions.end()) return {};
  std::string served;
  for (const std::string_view one : served_versions) served += (served.empty() ? "" : ", ") + std::string(one);
  return "this plug-in serves NIXL " + served + ", and " +
         (version.empty() ? "the version of this NIXL cannot be found" : "this is " + version) + "; UCX is not touched";
}

}  // namespace waywiser_nixl
