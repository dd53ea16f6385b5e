#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waywiser/base/json.hpp"
#include "waywiser/base/units.hpp"

namespace waywiser {

// What a machine consists of. `kind` is one of device_kinds(); `id` is the kind's short name and a number: "gpu0",
// "host1" (the memory of NUMA node 1), "cpu0" (a package), "nic0", "switch0" (PCIe), "root0" (root complex), ...
struct Device {
  std::string id;
  std::string kind;
  std::string name;                               // what people call it: "NVIDIA H200", "mlx5_0"
  std::string bus_id;                             // PCI address "0000:3b:00.0", empty when it has none
  int numa = -1;                                  // -1: unknown or not tied to a node
  std::string cores;                              // list of CPUs close to it: "0-19,40-59"
  Bytes memory_bytes = 0;                         // 0: unknown or none
  std::map<std::string, std::string> attributes;  // facts of one kind of device only

  bool operator==(const Device&) const = default;
};

// An undirected connection. Rates are per direction, for all `count` lanes or links of it together.
struct Link {
  std::string a;
  std::string b;
  std::string kind;  // one of link_kinds()
  int generation = 0;
  int width = 0;  // PCIe lanes, trained now
  int max_generation = 0;
  int max_width = 0;
  int count = 1;                               // NVLinks (or socket links) that run side by side
  std::optional<BytesPerSecond> nominal = {};  // what the wires carry after encoding; a measurement above it is wrong
  std::optional<BytesPerSecond> achievable = {};  // what good software reaches
  std::string source = {};                        // where the two numbers come from

  bool trained_down() const { return width < max_width || generation < max_generation; }
  bool operator==(const Link&) const = default;
};

struct Topology {
  std::string name;
  std::string kind = "synthetic";  // published, recorded, discovered, synthetic
  std::string source;
  std::vector<std::string> notes;               // what could not be found out, and what was assumed
  std::map<std::string, std::string> software;  // "driver": "580.159.04", "kernel": ...
  std::vector<Device> devices;
  std::vector<Link> links;

  const Device* find(std::string_view id) const;
  // Throws invalid_input that names the machine when there is no such device.
  const Device& at(std::string_view id) const;
  std::vector<std::string> ids(std::string_view kind) const;  // in the order of the file
  bool operator==(const Topology&) const = default;
};

inline constexpr std::string_view topology_schema = "waywiser.topology";
inline constexpr int topology_version = 1;
inline constexpr std::size_t most_devices = 4096;
inline constexpr std::size_t most_links = 65536;
inline constexpr std::size_t most_ends = 512;  // memories and NICs: their pairs are enumerated

const std::vector<std::string_view>& device_kinds();
const std::vector<std::string_view>& link_kinds();

// All memories that bytes can be copied between: host0, host1, ..., gpu0, gpu1, ...
std::vector<std::string> places(const Topology& topology);

// Throws invalid_input with one line: names used twice, links to nowhere, unknown kinds, numbers out of range.
void validate(const Topology& topology, std::string_view what);

// Names hardware and driver versions: 16 hexadecimal digits. Link states that change when idle do not count.
std::string fingerprint(const Topology& topology);

Json to_json(const Topology& topology);
// Validates, and fills the rates of links that give none (rates.hpp).
Topology topology_from_json(const Json& value, std::string_view what);

}  // namespace waywiser
