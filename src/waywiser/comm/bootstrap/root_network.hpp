#pragma once

#include <string>
#include <vector>

#include "waywiser/comm/bootstrap/tcp.hpp"

namespace waywiser {

// Whether the address is of the machine itself: no other one reaches it.
bool is_loopback(const Endpoint& root);
// The network interface of this machine by which `root` is reached: "eth0". Throws io for an unknown name, unavailable
// when there is none.
std::string interface_towards(const Endpoint& root);
// The address of that interface, for others to connect to. Throws io or unavailable like it.
std::string address_towards(const Endpoint& root);
// RDMA devices, as UCX calls them ("mlx5_0:1"), on that interface or those below it; all with "".
std::vector<std::string> rdma_devices_on(const std::string& interface);

}  // namespace waywiser
