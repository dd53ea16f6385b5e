#include <cstdlib>
#include <exception>
#include <map>
#include <string>
#include <string_view>

#include "agreed_plan.hpp"
#include "nccl_types.hpp"
#include "node_settings.hpp"

namespace waywiser_nccl {
namespace {

// Written by init(), before NCCL asks: its answers stay where they are until the process ends.
std::map<std::string, std::string, std::less<>>& kept() {
  static std::map<std::string, std::string, std::less<>> settings;
  return settings;
}

Result init_v1(std::uint8_t, std::uint8_t, std::uint8_t, const char*) {
  try {
    kept() = node_settings();
    // The tuner reads this one from the environment.
    if (const auto plan = kept().find("WAYWISER_NCCL_PLAN"); plan != kept().end())
      setenv(plan->first.c_str(), plan->second.c_str(), 0);
  } catch (const std::exception& error) {
    say(std::string("no settings: ") + error.what());
  }
  return success;
}

Result init_v2(std::uint8_t major, std::uint8_t minor, std::uint8_t patch, const char* suffix, LogFunction) {
  return init_v1(major, minor, patch, suffix);
}

Result finalize() { return success; }

// What the user has set wins.
const char* get_env(const char* name) {
  if (name == nullptr) return nullptr;
  if (const char* set = std::getenv(name)) return set;
  const auto found = kept().find(std::string_view(name));
  return found == kept().end() ? nullptr : found->second.c_str();
}

constexpr const char* name = "waywiser";

}  // namespace
}  // namespace waywiser_nccl

using namespace waywiser_nccl;

extern "C" {
[[gnu::visibility("default")]] extern const EnvV1 ncclEnvPlugin_v1{name, init_v1, finalize, get_env};
[[gnu::visibility("default")]] extern const EnvV2 ncclEnvPlugin_v2{name, init_v2, finalize, get_env};
}
