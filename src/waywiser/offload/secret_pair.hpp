#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "waywiser/comm/bootstrap/endpoint.hpp"
#include "waywiser/group/group.hpp"

namespace waywiser {

// Two processes that form a group and know each other by a secret of digits_of_secret digits, which their client has
// made for it alone: rank 0 waits at an address of its machine, rank 1 comes there. Throws what Group::join throws.
struct SecretPair {
  std::string_view purpose;  // of the group's name
  std::string secret;
  Endpoint root;
  bool encrypt = true;   // between machines
  Seconds timeout = 20;  // for the other one, and for each message
  std::shared_ptr<Platform> platform = {};
  std::function<bool()> interrupted = {};

  // Calls `announce(address)`, then waits for the other one.
  Group wait(const std::function<void(const std::string& address)>& announce) const;
  Group join() const;
};

}  // namespace waywiser
