#include <memory>

#include "engine.hpp"
#include "nixl_types.hpp"
#include "nixl_version.hpp"
#include "waywiser/c/waywiser.h"
#include "words.hpp"

namespace waywiser_nixl {
namespace {

EngineBase* make_engine(const EngineStart* start) {
  EngineBase* made = nullptr;
  told([&] {
    made = std::make_unique<Engine>(*start).release();
    return Status::success;
  });
  return made;
}

void end_engine(EngineBase* engine) { delete engine; }
const char* name() { return "WAYWISER"; }
const char* version() { return ww_version(); }
Parameters options() { return {{"plan", ""}}; }
std::vector<MemoryKind> memories() { return Engine::served_memories(); }

Plugin plugin{plugin_interface, make_engine, end_engine, name, version, options, memories};

}  // namespace
}  // namespace waywiser_nixl

extern "C" {

// Null: NIXL does not load it.
[[gnu::visibility("default")]] waywiser_nixl::Plugin* nixl_plugin_init() {
  using namespace waywiser_nixl;
  const std::string why = why_not_served(loaded_version());
  if (why.empty()) return &plugin;
  say(why);
  return nullptr;
}

[[gnu::visibility("default")]] void nixl_plugin_fini() {}
}
