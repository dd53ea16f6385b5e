#pragma once

#include <string>
#include <vector>

#include "waywiser/comm/bootstrap/tcp.hpp"

namespace waywiser {

// Whether the address is a loopback address, which no other machine reaches.
bool is_loopback(const Endpoint& root);
// Whether the loopback interface of this network namespace is up.
bool loopback_is_up();
// The network interface of this machine towards `root`: "eth0". Throws io for an unknown name, unavailable if there is
// none.
std::string interface_towards(const Endpoint& root);
// The address of that interface, to which others can connect. Throws io or unavailable like interface_towards().
std::string address_towards(const Endpoint& root);
// RDMA devices, in UCX's notation ("mlx5_0:1"), on that interface or those below it; "" gives all.
std::vector<std::string> rdma_devices_on(const std::string& interface);

}  // namespace waywiser
