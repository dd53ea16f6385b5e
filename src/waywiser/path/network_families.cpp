#include "waywiser/path/network_families.hpp"

#include <algorithm>

namespace waywiser {
namespace {

constexpr std::size_t most_rails = 8;

using Settings = std::vector<std::map<std::string, std::string>>;

// Without RDMA no network card reads the memory of a GPU.
Settings settings(bool gpu, bool rdma) {
  if (!gpu) return {{}};
  Settings all;
  for (const char* gdr : {"off", "on"})
    for (const char* gdrcopy : {"off", "on"}) {
      if (rdma)
        all.push_back({{"gdr", gdr}, {"gdrcopy", gdrcopy}});
      else if (std::string_view(gdr) == "off")
        all.push_back({{"gdrcopy", gdrcopy}});
    }
  return all;
}

using Pair = std::pair<NetworkDevice, NetworkDevice>;

std::vector<std::string_view> rails_of(std::string_view device) {
  std::vector<std::string_view> rails;
  for (std::size_t begin = 0; begin <= device.size();) {
    const std::size_t end = std::min(device.find('+', begin), device.size());
    rails.push_back(device.substr(begin, end - begin));
    begin = end + 1;
  }
  return rails;
}

// Pairs of which none shares a device with another.
std::vector<Pair> apart(const std::vector<Pair>& pairs) {
  std::vector<Pair> chosen;
  for (const Pair& pair : pairs)
    if (std::ranges::none_of(chosen, [&](const Pair& other) {
          return other.first.name == pair.first.name || other.second.name == pair.second.name;
        }))
      chosen.push_back(pair);
  return chosen;
}

// Which of them serves best is found by measuring.
std::vector<std::string> shares(std::size_t rails) {
  if (rails == 2) return {"10+90", "25+75", "40+60", "50+50", "60+40", "75+25", "90+10"};
  std::string equal;
  for (std::size_t i = 0; i < rails; ++i)
    equal += (i == 0 ? "" : "+") + std::to_string(100 / rails + (i < 100 % rails ? 1 : 0));
  return {equal};
}

std::string device_text(const NetworkDevice& here, const NetworkDevice& there) {
  return here.name == there.name ? here.name : here.name + "/" + there.name;
}

}  // namespace

std::vector<Family> network_families(const NetworkSide& here, const NetworkSide& there, Place source,
                                     Place destination) {
  std::vector<Family> families;
  const bool gpu = source.is_gpu() || destination.is_gpu();
  const auto add = [&](const std::string& transport, const std::string& device, bool rdma,
                       const std::vector<Parameter>& grid) {
    for (auto parameters : settings(gpu, rdma)) {
      parameters["transports"] = transport;
      if (!device.empty()) parameters["device"] = device;
      families.push_back({{"ucx", source, destination, 2, std::move(parameters)}, grid});
    }
  };
  const auto add_all = [&](const std::string& transport, bool rdma) {
    const std::vector<Pair> pairs = joined_devices(here, there, rdma);
    for (const auto& [mine, theirs] : pairs) add(transport, device_text(mine, theirs), rdma, {});
    if (pairs.empty()) add(transport, "", rdma, {});
    std::vector<Pair> rails = apart(pairs);
    if (rails.size() < 2) return;
    if (rails.size() > most_rails) rails.resize(most_rails);
    std::string device;
    for (const auto& [mine, theirs] : rails) device += (device.empty() ? "" : "+") + device_text(mine, theirs);
    add(transport, device, rdma, {{"share", shares(rails.size())}});
  };
  for (const char* transport : {"rc", "dc", "ud"}) add_all(transport, true);
  add_all("network-tcp", false);
  return families;
}

std::string turned_device(std::string_view device) {
  std::string turned;
  for (const std::string_view rail : rails_of(device)) {
    const auto slash = rail.find('/');
    if (!turned.empty()) turned += '+';
    if (slash != std::string_view::npos) turned += std::string(rail.substr(slash + 1)) + "/";
    turned += rail.substr(0, slash);
  }
  return turned;
}

std::vector<std::string> devices_here(std::string_view device) {
  std::vector<std::string> devices;
  for (const std::string_view rail : rails_of(device)) devices.emplace_back(rail.substr(0, rail.find('/')));
  return devices;
}

}  // namespace waywiser
