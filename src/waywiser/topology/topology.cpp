#include "waywiser/topology/topology.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr std::size_t longest_text = 4096;

bool known(const std::vector<std::string_view>& kinds, std::string_view kind) {
  return std::ranges::find(kinds, kind) != kinds.end();
}

bool plain_id(std::string_view id) {
  return !id.empty() && id.size() <= 64 && std::ranges::all_of(id, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
  });
}

bool rate_fits(const std::optional<BytesPerSecond>& rate) {
  return !rate || (std::isfinite(*rate) && *rate > 0 && *rate < 1e18);
}

// parse_place() must read the ids of memories.
bool place_id(const Device& device) {
  const std::string_view id = device.id;
  if (!id.starts_with(device.kind)) return false;
  const std::string_view number = id.substr(device.kind.size());
  return !number.empty() && number.size() <= 4 && (number == "0" || number[0] != '0') &&
         number.find_first_not_of("0123456789") == number.npos;
}

void validate_device(const Device& device, std::string_view what) {
  if (!plain_id(device.id)) refuse_input(what, quoted(device.id, 64) + " is not a device id");
  if (!known(device_kinds(), device.kind))
    refuse_input(what, device.id + " has the unknown kind '" + device.kind + "'");
  if ((device.kind == "host" || device.kind == "gpu") && !place_id(device))
    refuse_input(what, "the " + device.kind + " '" + device.id + "' must be called " + device.kind + "0, " +
                           device.kind + "1, ...");
  if (device.numa < -1 || device.numa >= 4096) refuse_input(what, device.id + ": numa must be from -1 to 4095");
  if (std::max({device.name.size(), device.bus_id.size(), device.cores.size()}) > longest_text)
    refuse_input(what, device.id + " has a text longer than " + std::to_string(longest_text));
}

void validate_link(const Link& link, std::string_view what) {
  const std::string between = "link " + link.a + " - " + link.b;
  if (link.a == link.b) refuse_input(what, between + " joins a device to itself");
  if (!known(link_kinds(), link.kind)) refuse_input(what, between + " has the unknown kind '" + link.kind + "'");
  const auto small = [](int number) { return number >= 0 && number <= 1024; };
  if (!small(link.generation) || !small(link.max_generation) || !small(link.width) || !small(link.max_width))
    refuse_input(what, between + ": generation and width must be from 0 to 1024");
  if (link.count < 1 || link.count > 65536) refuse_input(what, between + ": count must be from 1 to 65536");
  if (!rate_fits(link.nominal) || !rate_fits(link.achievable))
    refuse_input(what, between + ": rates must be positive and finite, in bytes per second");
}

}  // namespace

const std::vector<std::string_view>& device_kinds() {
  static const std::vector<std::string_view> kinds{"host", "cpu",  "root",     "switch",  "bridge", "gpu",
                                                   "nic",  "nvme", "nvswitch", "network", "storage"};
  return kinds;
}

const std::vector<std::string_view>& link_kinds() {
  static const std::vector<std::string_view> kinds{"nvlink", "xgmi", "pcie",     "socket",
                                                   "memory", "c2c",  "internal", "network"};
  return kinds;
}

const Device* Topology::find(std::string_view id) const {
  const auto found = std::ranges::find(devices, id, &Device::id);
  return found == devices.end() ? nullptr : &*found;
}

const Device& Topology::at(std::string_view id) const {
  if (const Device* device = find(id)) return *device;
  throw Error(ErrorKind::invalid_input, "machine " + name + " has no device " + quoted(id, 64));
}

std::vector<std::string> Topology::ids(std::string_view wanted) const {
  std::vector<std::string> found;
  for (const Device& device : devices)
    if (device.kind == wanted) found.push_back(device.id);
  return found;
}

std::vector<std::string> places(const Topology& topology) {
  std::vector<std::string> found = topology.ids("host");
  const std::vector<std::string> gpus = topology.ids("gpu");
  found.insert(found.end(), gpus.begin(), gpus.end());
  return found;
}

void validate(const Topology& topology, std::string_view what) {
  if (topology.devices.size() > most_devices)
    refuse_input(what, "more than " + std::to_string(most_devices) + " devices");
  if (topology.links.size() > most_links) refuse_input(what, "more than " + std::to_string(most_links) + " links");
  const auto is_end = [](const Device& device) {
    return device.kind == "host" || device.kind == "gpu" || device.kind == "nic";
  };
  if (std::ranges::count_if(topology.devices, is_end) > static_cast<std::ptrdiff_t>(most_ends))
    refuse_input(what, "more than " + std::to_string(most_ends) + " memories and NICs");
  std::set<std::string_view> seen;
  for (const Device& device : topology.devices) {
    validate_device(device, what);
    if (!seen.insert(device.id).second) refuse_input(what, "two devices are called '" + device.id + "'");
  }
  for (const Link& link : topology.links) {
    for (const std::string& end : {link.a, link.b})
      if (!seen.contains(end)) refuse_input(what, "a link ends at " + quoted(end, 64) + ", which is not a device");
    validate_link(link, what);
  }
}

}  // namespace waywiser
