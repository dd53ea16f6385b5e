#include <algorithm>
#include <charconv>
#include <map>

#include "waywiser/topology/sysfs_parts.hpp"

namespace waywiser {
namespace {

const std::string net_folder = "/sys/class/net/";

Device* nic_at(Topology& topology, const std::vector<std::string>& path) {
  for (auto part = path.rbegin(); part != path.rend(); ++part)
    for (Device& device : topology.devices)
      if (device.kind == "nic" && device.bus_id == *part) return &device;
  return nullptr;
}

// "100 Gb/sec (4X EDR)" -> bytes per second.
std::optional<BytesPerSecond> rate_of_port(const std::string& text) {
  double gigabits = 0;
  const auto [rest, problem] = std::from_chars(text.data(), text.data() + text.size(), gigabits);
  if (problem != std::errc{} || text.find("Gb/sec") == text.npos || !(gigabits > 0) || gigabits > 1e5)
    return std::nullopt;
  return gigabits * 1e9 / 8;
}

// All ports of one link layer are taken to be in one network.
class Networks {
 public:
  explicit Networks(Topology& topology) : topology_(topology) {}

  void join(const std::string& nic, const std::string& layer, BytesPerSecond rate, const std::string& source) {
    const auto [entry, fresh] = ids_.emplace(layer, "network" + std::to_string(ids_.size()));
    if (fresh) topology_.devices.push_back({entry->second, "network", layer, "", -1, "", 0, {}});
    Link cable{nic, entry->second, "network"};
    cable.nominal = rate;
    cable.achievable = rate * 0.97;
    cable.source = source + "; achievable: 0.97 after headers of 4 KB packets, not measured";
    topology_.links.push_back(cable);
  }

 private:
  Topology& topology_;
  std::map<std::string, std::string> ids_;
};

void read_rdma_ports(const SystemFiles& files, const std::string& name, Device& nic, Networks& networks) {
  const std::string id = nic.id;  // joining a network moves the devices
  for (const std::string& port : files.list(rdma_folder + name + "/ports")) {
    const std::string folder = rdma_folder + name + "/ports/" + port;
    const std::string key = "port" + port + ".";
    const std::string rate = files.line(folder + "/rate").value_or("");
    const std::string layer = files.line(folder + "/link_layer").value_or("unknown");
    const std::string state = files.line(folder + "/state").value_or("");
    nic.attributes[key + "rate"] = rate;
    nic.attributes[key + "link_layer"] = layer;
    nic.attributes[key + "state"] = state;
  }
  for (const std::string& port : files.list(rdma_folder + name + "/ports")) {
    const std::string folder = rdma_folder + name + "/ports/" + port;
    const auto rate = rate_of_port(files.line(folder + "/rate").value_or(""));
    if (rate && files.line(folder + "/state").value_or("").find("ACTIVE") != std::string::npos)
      networks.join(id, files.line(folder + "/link_layer").value_or("unknown"), *rate, folder.substr(1) + "/rate");
  }
}

}  // namespace

void read_network_ports(const SystemFiles& files, Topology& topology) {
  Networks networks(topology);
  for (const std::string& name : files.list(net_folder)) {
    Device* nic = nic_at(topology, files.resolved(net_folder + name + "/device"));
    if (nic == nullptr) continue;
    nic->name = name;
    nic->attributes["interface"] = name;
    const auto megabits = files.number(net_folder + name + "/speed");
    if (megabits && *megabits > 0) nic->attributes["speed_mbps"] = std::to_string(*megabits);
    const bool rdma = files.exists(net_folder + name + "/device/infiniband");
    if (megabits && *megabits > 0 && *megabits < 100'000'000 && !rdma)
      networks.join(nic->id, "Ethernet", static_cast<double>(*megabits) * 1e6 / 8, "sys/class/net/" + name + "/speed");
  }
  for (const std::string& name : files.list(rdma_folder)) {
    Device* nic = nic_at(topology, files.resolved(rdma_folder + name + "/device"));
    if (nic == nullptr) continue;
    nic->name = name;
    nic->attributes["rdma"] = name;
    if (const auto firmware = files.line(rdma_folder + name + "/fw_ver")) nic->attributes["firmware"] = *firmware;
    read_rdma_ports(files, name, *nic, networks);
  }
}

}  // namespace waywiser
