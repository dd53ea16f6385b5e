#include "waywiser/topology/network_side.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <memory>

namespace waywiser {
namespace {

constexpr std::size_t most_devices_told = 256;

std::string network_of(const ifaddrs& entry) {
  const auto& address = *reinterpret_cast<const sockaddr_in*>(entry.ifa_addr);
  const auto& mask = *reinterpret_cast<const sockaddr_in*>(entry.ifa_netmask);
  const in_addr network{address.sin_addr.s_addr & mask.sin_addr.s_addr};
  std::array<char, INET_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET, &network, text.data(), text.size());
  return std::string(text.data()) + "/" + std::to_string(std::popcount(mask.sin_addr.s_addr));
}

// By interface, ordered by name.
std::map<std::string, std::vector<std::string>> networks_of_interfaces() {
  std::map<std::string, std::vector<std::string>> found;
  ifaddrs* raw = nullptr;
  if (::getifaddrs(&raw) != 0) return found;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> list(raw, ::freeifaddrs);
  for (const ifaddrs* entry = raw; entry != nullptr; entry = entry->ifa_next) {
    const bool up = (entry->ifa_flags & IFF_UP) != 0 && (entry->ifa_flags & IFF_RUNNING) != 0;
    if (!up || (entry->ifa_flags & IFF_LOOPBACK) != 0) continue;
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET || entry->ifa_netmask == nullptr) continue;
    found[entry->ifa_name].push_back(network_of(*entry));
  }
  return found;
}

bool in_one_network(const NetworkDevice& a, const NetworkDevice& b) {
  return std::ranges::any_of(a.networks,
                             [&](const auto& network) { return std::ranges::count(b.networks, network) != 0; });
}

}  // namespace

std::vector<NetworkDevice> network_devices(const SystemFiles& files) {
  std::vector<NetworkDevice> devices;
  const auto interfaces = networks_of_interfaces();
  for (const auto& [name, networks] : interfaces) devices.push_back({name, false, networks});
  for (const std::string& name : files.list(rdma_folder))
    for (const std::string& port : files.list(rdma_folder + name + "/ports")) {
      const std::string folder = rdma_folder + name + "/ports/" + port;
      if (files.line(folder + "/state").value_or("").find("ACTIVE") == std::string::npos) continue;
      const auto interface = interfaces.find(files.line(folder + "/gid_attrs/ndevs/0").value_or(""));
      NetworkDevice device{name + ":" + port, true, {files.line(folder + "/link_layer").value_or("unknown")}};
      if (interface != interfaces.end()) device.networks = interface->second;
      devices.push_back(std::move(device));
    }
  return devices;
}

Json to_json(const NetworkSide& side) {
  Json devices = Json::array();
  for (const NetworkDevice& device : side.devices)
    devices.push_back({{"name", device.name}, {"rdma", device.rdma}, {"networks", device.networks}});
  return {{"machine", side.machine}, {"fingerprint", side.fingerprint}, {"gpus", side.gpus}, {"devices", devices}};
}

NetworkSide network_side_from_json(const Json& value, std::string_view what) {
  NetworkSide side{require_string(value, "machine", what),
                   require_string(value, "fingerprint", what),
                   static_cast<int>(require_integer(value, "gpus", what, 0, 4096)),
                   {}};
  const Json& devices = require_array(value, "devices", what);
  for (std::size_t i = 0; i < std::min(devices.size(), most_devices_told); ++i) {
    NetworkDevice device{require_string(devices[i], "name", what), require(devices[i], "rdma", what) == true, {}};
    for (const Json& network : require_array(devices[i], "networks", what))
      if (network.is_string()) device.networks.push_back(network.get<std::string>());
    side.devices.push_back(std::move(device));
  }
  return side;
}

std::vector<std::pair<NetworkDevice, NetworkDevice>> joined_devices(const NetworkSide& here, const NetworkSide& there,
                                                                    bool rdma) {
  std::vector<std::pair<NetworkDevice, NetworkDevice>> joined, by_number;
  std::vector<NetworkDevice> mine, theirs;
  const auto fits = [&](const NetworkDevice& device) { return device.rdma == rdma; };
  std::ranges::copy_if(here.devices, std::back_inserter(mine), fits);
  std::ranges::copy_if(there.devices, std::back_inserter(theirs), fits);
  for (const NetworkDevice& a : mine)
    for (const NetworkDevice& b : theirs)
      if (in_one_network(a, b)) joined.emplace_back(a, b);
  for (std::size_t i = 0; i < std::min(mine.size(), theirs.size()); ++i) by_number.emplace_back(mine[i], theirs[i]);
  return joined.empty() ? by_number : joined;
}

}  // namespace waywiser
