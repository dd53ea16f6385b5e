// Variables that launchers set, as lines NAME=VALUE.
#include "waywiser/comm/bootstrap/launch.hpp"

#include <map>

#include "tests/fuzz/targets.hpp"

namespace waywiser::fuzz {
namespace {

using Variables = std::map<std::string, std::string, std::less<>>;

Variables variables_in(std::string_view text) {
  Variables found;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    const auto equals = line.find('=');
    if (equals != line.npos) found.emplace(line.substr(0, equals), line.substr(equals + 1));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return found;
}

}  // namespace

void launch(Bytes input) {
  const Variables variables = variables_in(text_of(input));
  reads_or_refuses([&] {
    const Launch read = read_launch([&](std::string_view name) -> std::optional<std::string> {
      const auto found = variables.find(name);
      return found == variables.end() ? std::nullopt : std::optional(found->second);
    });
    promise(read.size >= 1 && read.rank >= 0 && read.rank < read.size, "a rank beyond the size");
    promise(!read.root || read.secret.size() >= shortest_secret, "a root without a secret");
  });
}

}  // namespace waywiser::fuzz
