#pragma once

#include <string>
#include <vector>

#include "waywiser/topology/system_files.hpp"
#include "waywiser/topology/topology.hpp"

namespace waywiser {

// A network device of a running machine.
struct NetworkDevice {
  std::string name;  // as UCX names it: "eth0", "mlx5_0:1"
  bool rdma = false;
  std::vector<std::string> networks;  // "10.99.7.0/24", or the link layer of a port without addresses
};

// What one end of a network reports about itself to the other.
struct NetworkSide {
  std::string machine;
  std::string fingerprint;
  int gpus = 0;
  std::vector<NetworkDevice> devices;  // interfaces, then ports of RDMA devices
};

// This machine's devices that are up: interfaces with an IPv4 address, active ports of RDMA devices.
std::vector<NetworkDevice> network_devices(const SystemFiles& files);

Json to_json(const NetworkSide& side);
NetworkSide network_side_from_json(const Json& value, std::string_view what);  // throws invalid_input

// The pairs of a device here and one there in the same network; if there are none, the first with the first and so on.
std::vector<std::pair<NetworkDevice, NetworkDevice>> joined_devices(const NetworkSide& here, const NetworkSide& there,
                                                                    bool rdma);

}  // namespace waywiser
