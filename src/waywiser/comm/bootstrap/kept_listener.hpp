#pragma once

#include "waywiser/comm/bootstrap/endpoint.hpp"
#include "waywiser/device/descriptor.hpp"

// A process that has made a unique id listens before it becomes rank 0. For any thread.
namespace waywiser {

void keep_listener(const Endpoint& endpoint, Descriptor listener);
// Not open: this process does not listen there.
Descriptor take_listener(const Endpoint& endpoint);

}  // namespace waywiser
