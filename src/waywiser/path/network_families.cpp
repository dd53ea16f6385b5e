#include "waywiser/path/network_families.hpp"

#include <algorithm>

namespace waywiser {
namespace {

constexpr std::size_t most_rails = 8;
constexpr std::size_t most_pairs = 8;  // of more, each device is tried with one at the other end

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

class NetworkCandidates {
 public:
  NetworkCandidates(Place source, Place destination)
      : source_(source), destination_(destination), gpu_(source.is_gpu() || destination.is_gpu()) {}

  // `pairs`: of devices that are joined.
  void add(const std::string& transport, bool rdma, const std::vector<Pair>& pairs) {
    for (const auto& [mine, theirs] : pairs) add_ucx(transport, device_text(mine, theirs), rdma, {});
    if (pairs.empty()) add_ucx(transport, "", rdma, {});
    std::vector<Pair> rails = apart(pairs);
    for (const auto& [mine, theirs] : rails) add_staged(transport, device_text(mine, theirs));
    if (rails.size() < 2) return;
    if (rails.size() > most_rails) rails.resize(most_rails);
    if (rails.size() > 2) add_rails(transport, rdma, {rails[0], rails[1]}, {"50+50"});
    add_rails(transport, rdma, rails, shares(rails.size()));
  }

  // `pairs`: of devices with addresses.
  void add_tls(const std::vector<Pair>& pairs) {
    if (gpu_) return;
    for (const auto& [mine, theirs] : apart(pairs))
      for (const char* by : {"openssl", "kernel"})
        families_.push_back(
            {{"tls", source_, destination_, 2, {{"by", by}, {"device", device_text(mine, theirs)}}}, {}});
  }

  std::vector<Family> take() { return std::move(families_); }

 private:
  void add_rails(const std::string& transport, bool rdma, const std::vector<Pair>& rails,
                 const std::vector<std::string>& shares) {
    std::string device;
    for (const auto& [mine, theirs] : rails) device += (device.empty() ? "" : "+") + device_text(mine, theirs);
    add_ucx(transport, device, rdma, {{"share", shares}});
  }

  void add_ucx(const std::string& transport, const std::string& device, bool rdma, const std::vector<Parameter>& grid) {
    for (auto parameters : settings(gpu_, rdma)) {
      parameters["transports"] = transport;
      if (!device.empty()) parameters["device"] = device;
      families_.push_back({{"ucx", source_, destination_, 2, std::move(parameters)}, grid});
    }
  }

  void add_staged(const std::string& transport, const std::string& device) {
    if (!gpu_) return;
    Path path{"ucx_staged", source_, destination_, 2, {{"transports", transport}, {"device", device}}};
    for (const char* variant : {"pageable", "whole", "pipelined"}) {
      path.parameters["variant"] = variant;
      const bool in_chunks = std::string_view(variant) == "pipelined";
      families_.push_back({path, in_chunks ? staged_grid() : std::vector<Parameter>{}});
    }
  }

  static std::vector<Parameter> staged_grid() { return {{"chunk", {"256K", "1M", "4M"}}, {"depth", {"2", "4"}}}; }

  const Place source_, destination_;
  const bool gpu_;
  std::vector<Family> families_;
};

}  // namespace

std::vector<Family> network_families(const NetworkSide& here, const NetworkSide& there, Place source,
                                     Place destination) {
  NetworkCandidates candidates(source, destination);
  const auto joined = [&](bool rdma) {
    const std::vector<Pair> pairs = joined_devices(here, there, rdma);
    return pairs.size() > most_pairs ? apart(pairs) : pairs;
  };
  for (const char* transport : {"rc", "dc", "ud"}) candidates.add(transport, true, joined(true));
  candidates.add("network-tcp", false, joined(false));
  candidates.add_tls(joined(false));
  return candidates.take();
}

std::vector<std::string_view> rails_of(std::string_view device) {
  std::vector<std::string_view> rails;
  for (std::size_t begin = 0; begin <= device.size();) {
    const std::size_t end = std::min(device.find('+', begin), device.size());
    rails.push_back(device.substr(begin, end - begin));
    begin = end + 1;
  }
  return rails;
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
