#include "words.hpp"

#include <cstdio>
#include <mutex>
#include <set>

namespace waywiser_nixl {
namespace {

constexpr std::size_t most_lines = 100;

}  // namespace

// Text of other agents is among it: what is no printable ASCII becomes a question mark.
void say(const std::string& text) {
  static std::mutex mutex;
  static auto* const said = new std::set<std::string>;  // for threads that outlive main
  const std::lock_guard lock(mutex);
  if (said->size() >= most_lines || !said->insert(text).second) return;
  std::string line = text;
  for (char& each : line)
    if (each < ' ' || each > '~') each = '?';
  std::fprintf(stderr, "waywiser: NIXL: %s\n", line.c_str());
}

}  // namespace waywiser_nixl
