#include "waywiser/base/fingerprint_hash.hpp"
#include "waywiser/topology/topology.hpp"

namespace waywiser {

std::string fingerprint(const Topology& topology) {
  FingerprintHash hash;
  for (const auto& [name, version] : topology.software) {
    hash.add(name);
    hash.add(version);
  }
  for (const Device& device : topology.devices) {
    if (device.kind == "storage") continue;  // file systems: nothing that was measured of the machine depends on them
    hash.add(device.id);
    hash.add(device.name);
    hash.add(device.bus_id);
    hash.add(static_cast<std::uint64_t>(device.numa + 1));
    if (device.kind == "gpu") hash.add(device.memory_bytes);
  }
  for (const Link& link : topology.links) {
    hash.add(link.a);
    hash.add(link.b);
    hash.add(link.kind);
    for (const int number : {link.max_generation, link.max_width, link.count})
      hash.add(static_cast<std::uint64_t>(number));
  }
  return hash.hexadecimal();
}

}  // namespace waywiser
