#include "waywiser/base/ancestors.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

namespace waywiser {
namespace {

constexpr std::size_t most_ancestors = 64;
constexpr int first_process = 1;
constexpr int fields_from_parent_to_begin = 18;  // of /proc/PID/stat

std::string contents(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

struct Facts {
  int parent = 0;
  std::string begin;
};

// The name of the command comes first, in brackets, and may contain anything.
Facts facts_of(const std::filesystem::path& folder) {
  const std::string text = contents(folder / "stat");
  std::istringstream fields(text.substr(std::min(text.rfind(')') + 1, text.size())));
  Facts facts;
  std::string state;
  fields >> state >> facts.parent;
  for (int i = 0; i < fields_from_parent_to_begin; ++i) fields >> facts.begin;
  return facts;
}

}  // namespace

std::vector<Ancestor> ancestors() {
  std::vector<Ancestor> found;
  for (int process = ::getppid(); process > first_process && found.size() < most_ancestors;) {
    const std::filesystem::path folder = "/proc/" + std::to_string(process);
    const Facts facts = facts_of(folder);
    std::string command = contents(folder / "cmdline");
    std::ranges::replace(command, '\0', ' ');
    found.push_back({std::to_string(process) + "." + facts.begin, std::move(command), contents(folder / "environ")});
    process = facts.parent;
  }
  return found;
}

}  // namespace waywiser
