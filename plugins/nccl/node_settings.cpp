#include "node_settings.hpp"

#include <cstdlib>
#include <fstream>

#include "agreed_plan.hpp"
#include "waywiser/c/waywiser.h"

namespace waywiser_nccl {
namespace {

constexpr std::size_t most_lines = 1000, longest_line = 4096;

std::string file_of_this_machine() {
  const char* folder = std::getenv("WAYWISER_NCCL_SETTINGS");
  if (folder == nullptr || *folder == '\0') throw NothingToSay("WAYWISER_NCCL_SETTINGS names no folder of settings");
  char fingerprint[64];
  if (ww_machine_fingerprint(fingerprint, sizeof fingerprint) != WW_OK) throw NothingToSay(ww_error_text());
  return std::string(folder) + "/" + fingerprint + ".nccl.conf";
}

}  // namespace

std::map<std::string, std::string, std::less<>> node_settings() {
  const std::string file = file_of_this_machine();
  std::ifstream lines(file);
  if (!lines) throw NothingToSay(file + ": cannot be read");
  std::map<std::string, std::string, std::less<>> found;
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line);) {
    if (++count > most_lines || line.size() > longest_line) throw NothingToSay(file + ": is too long");
    const std::size_t equal = line.find('=');
    if (line.empty() || line.front() == '#') continue;
    if (equal == 0 || equal == std::string::npos) throw NothingToSay(file + ": a line is not NAME=VALUE");
    found[line.substr(0, equal)] = line.substr(equal + 1);
  }
  return found;
}

}  // namespace waywiser_nccl
