#include "waywiser/comm/bootstrap/kept_listener.hpp"

#include <map>
#include <mutex>
#include <string>

namespace waywiser {
namespace {

struct KeptListeners {
  std::mutex mutex;
  std::map<std::string, Descriptor> by_endpoint;
};

KeptListeners& kept_listeners() {
  static KeptListeners kept;
  return kept;
}

}  // namespace

void keep_listener(const Endpoint& endpoint, Descriptor listener) {
  KeptListeners& kept = kept_listeners();
  const std::lock_guard lock(kept.mutex);
  kept.by_endpoint.insert_or_assign(text(endpoint), std::move(listener));
}

Descriptor take_listener(const Endpoint& endpoint) {
  KeptListeners& kept = kept_listeners();
  const std::lock_guard lock(kept.mutex);
  const auto found = kept.by_endpoint.extract(text(endpoint));
  return found ? std::move(found.mapped()) : Descriptor();
}

}  // namespace waywiser
