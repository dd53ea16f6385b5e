#include "waywiser/measure/old_names.hpp"

namespace waywiser {
namespace {

struct Renamed {
  std::string_view old, today;
};
constexpr Renamed renamed[] = {{"packets", "LL"}, {"lines", "LL128"}, {"two_shot_lines", "two_shot_LL128"}};

}  // namespace

std::string algorithm_of_today(std::string_view name) {
  const std::string_view bare = name.substr(0, name.find('('));
  for (const auto& [old, today] : renamed)
    if (bare == old) return std::string(today) + std::string(name.substr(bare.size()));
  return std::string(name);
}

}  // namespace waywiser
