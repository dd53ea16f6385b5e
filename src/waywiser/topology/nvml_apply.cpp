#include <algorithm>
#include <map>
#include <set>

#include "waywiser/topology/nvml.hpp"
#include "waywiser/topology/rates.hpp"

namespace waywiser {
namespace {

std::string gpu_id(std::size_t number) { return "gpu" + std::to_string(number); }

void rename_ends(Topology& topology, const std::map<std::string, std::string>& ids) {
  const auto rename = [&](std::string& id) {
    if (const auto found = ids.find(id); found != ids.end()) id = found->second;
  };
  for (Link& link : topology.links) {
    rename(link.a);
    rename(link.b);
  }
  for (Device& device : topology.devices) rename(device.id);
}

// GPUs get NVML's numbers; those that NVML does not show go.
void number_gpus(Topology& topology, const NvmlReport& report) {
  std::map<std::string, std::string> ids;
  std::set<std::string> gone;
  for (const Device& device : topology.devices) {
    if (device.kind != "gpu") continue;
    const auto found = std::ranges::find(report.gpus, device.bus_id, &NvmlGpu::bus_id);
    if (found == report.gpus.end())
      gone.insert(device.id);
    else
      ids[device.id] = gpu_id(static_cast<std::size_t>(found - report.gpus.begin()));
  }
  if (!gone.empty())
    topology.notes.push_back(std::to_string(gone.size()) +
                             " GPUs are on the bus but not visible to this process, and are left out");
  std::erase_if(topology.links, [&](const Link& link) { return gone.contains(link.a) || gone.contains(link.b); });
  std::erase_if(topology.devices, [&](const Device& device) { return gone.contains(device.id); });
  rename_ends(topology, ids);
}

std::string first_of(const Topology& topology, const std::string& kind) {
  const std::vector<std::string> ids = topology.ids(kind);
  return ids.empty() ? "" : ids.front();
}

// A container may show GPUs but no /sys: hang them on the first root complex.
std::string some_root(Topology& topology) {
  if (const std::string root = first_of(topology, "root"); !root.empty()) return root;
  topology.devices.push_back({"root0", "root", "root complex", "", 0, "", 0, {}});
  Link link{first_of(topology, "cpu"), "root0", "internal"};
  link.source = "inside the package; no limit is known";
  if (!link.a.empty()) topology.links.push_back(link);
  return "root0";
}

void add_missing(Topology& topology, const NvmlReport& report) {
  for (std::size_t i = 0; i < report.gpus.size(); ++i) {
    if (topology.find(gpu_id(i)) != nullptr) continue;
    const std::string root = some_root(topology);
    topology.notes.push_back(gpu_id(i) + " is not in /sys: its place on the bus is assumed");
    topology.devices.push_back({gpu_id(i), "gpu", "", report.gpus[i].bus_id, 0, "", 0, {}});
    topology.links.push_back({root, gpu_id(i), "pcie"});
  }
}

void complete_pcie(Link& link, const NvmlGpu& gpu) {
  if (link.max_generation == 0) link.max_generation = gpu.pcie_generation;
  if (link.generation == 0) link.generation = link.max_generation;
  if (link.max_width == 0) link.max_width = gpu.pcie_width;
  if (link.width == 0) link.width = gpu.pcie_width_now != 0 ? gpu.pcie_width_now : link.max_width;
  if (link.nominal) return;
  const auto rate = rate_of(link);
  if (!rate) return;
  link.nominal = rate->nominal;
  link.achievable = rate->achievable;
  link.source = rate->source;
}

void describe_gpus(Topology& topology, const NvmlReport& report) {
  for (std::size_t i = 0; i < report.gpus.size(); ++i) {
    const NvmlGpu& gpu = report.gpus[i];
    Device& device = *std::ranges::find(topology.devices, gpu_id(i), &Device::id);
    device.name = gpu.name;
    device.memory_bytes = gpu.memory_bytes;
    device.attributes.erase("gpu_links");
    if (gpu.memory_bandwidth > 0)
      device.attributes["memory_bandwidth"] = std::to_string(static_cast<std::uint64_t>(gpu.memory_bandwidth));
    if (gpu.nvlinks != 0) {
      device.attributes["nvlinks"] = std::to_string(gpu.nvlinks);
      device.attributes["nvlinks_active"] = std::to_string(gpu.active.size());
    }
    if (gpu.active.size() < gpu.nvlinks)
      topology.notes.push_back(gpu_id(i) + ": " + std::to_string(gpu.active.size()) + " of " +
                               std::to_string(gpu.nvlinks) + " NVLinks are up");
    for (std::size_t j = 0; j < gpu.peers.size(); ++j)
      if (!gpu.peers[j].empty()) device.attributes["peer:" + gpu_id(j)] = gpu.peers[j];
    for (Link& link : topology.links)
      if (link.kind == "pcie" && link.b == device.id) complete_pcie(link, gpu);
  }
}

// Compute capability 6 came with NVLink 1, 7 with 2, ...; the versions that NVML gives are not those of data sheets.
int nvlink_generation(const NvmlGpu& gpu) { return std::clamp(gpu.compute_major - 5, 0, 5); }

Link nvlink(const std::string& a, const std::string& b, int count, const NvmlGpu& gpu) {
  Link link{a, b, "nvlink"};
  link.generation = link.max_generation = nvlink_generation(gpu);
  link.count = count;
  const auto rate = nvlink_rate(link.generation, count);
  if (rate) {
    link.nominal = rate->nominal;
    link.achievable = rate->achievable;
    link.source = rate->source;
  }
  // Generations 1 to 3 report the raw rate of the wires; from 4 on it is what data sheets round.
  if (gpu.nvlink_megabytes && link.generation >= 4) {
    const double nominal = *gpu.nvlink_megabytes * 1e6 * count;
    link.achievable = rate ? rate->achievable / rate->nominal * nominal : nominal;
    link.nominal = nominal;
    link.source = std::to_string(static_cast<int>(*gpu.nvlink_megabytes)) +
                  " MB/s a link (NVML); achievable: 0.83 of it was measured on H200";
  }
  return link;
}

struct NvlinkEnds {
  std::map<std::string, int> links;  // other device -> number of links
  std::set<std::string> nvswitches;  // bus ids; an empty text where a virtual machine hides them
};

NvlinkEnds ends_of(const Topology& topology, const NvmlReport& report, const NvmlGpu& gpu) {
  NvlinkEnds ends;
  for (const NvmlLink& link : gpu.active) {
    const auto peer = std::ranges::find(report.gpus, link.bus_id, &NvmlGpu::bus_id);
    if (link.end == NvlinkEnd::nvswitch) {
      ++ends.links["nvswitch0"];
      ends.nvswitches.insert(link.bus_id.starts_with("ffff") ? "" : link.bus_id);
    } else if (link.end == NvlinkEnd::cpu) {
      ++ends.links[first_of(topology, "cpu")];
    } else if (peer != report.gpus.end()) {
      ++ends.links[gpu_id(static_cast<std::size_t>(peer - report.gpus.begin()))];
    }
  }
  return ends;
}

// The package of the GPU's own NUMA node is where NVLinks to a CPU end.
std::string own_cpu(const Topology& topology, const Device& gpu, const std::string& fallback) {
  for (const Link& link : topology.links)
    if (link.kind == "memory" && topology.at(link.a).numa == gpu.numa) return link.b;
  return fallback;
}

void add_nvlinks(Topology& topology, const NvmlReport& report) {
  std::set<std::string> nvswitches;
  std::vector<Link> links;
  for (std::size_t i = 0; i < report.gpus.size(); ++i) {
    const NvlinkEnds ends = ends_of(topology, report, report.gpus[i]);
    nvswitches.insert(ends.nvswitches.begin(), ends.nvswitches.end());
    for (const auto& [other, count] : ends.links) {
      if (other.empty() || other == gpu_id(i)) continue;
      const bool peer = other.starts_with("gpu");
      if (peer && std::stoul(other.substr(3)) < i) continue;  // already there from the other side
      const bool cpu = other.starts_with("cpu");
      links.push_back(
          nvlink(gpu_id(i), cpu ? own_cpu(topology, topology.at(gpu_id(i)), other) : other, count, report.gpus[i]));
    }
  }
  if (!nvswitches.empty()) topology.devices.push_back({"nvswitch0", "nvswitch", "NVSwitch", "", -1, "", 0, {}});
  if (!nvswitches.empty() && !nvswitches.contains(""))
    topology.devices.back().attributes["switches"] = std::to_string(nvswitches.size());
  topology.links.insert(topology.links.end(), links.begin(), links.end());
}

}  // namespace

void apply_nvml(Topology& topology, const NvmlReport& report) {
  if (report.why_not) {
    topology.notes.push_back(*report.why_not);
    return;
  }
  topology.source += topology.source.empty() ? "NVML" : " and NVML";
  if (!report.driver.empty()) topology.software["driver"] = report.driver;
  if (!report.cuda.empty()) topology.software["cuda_driver"] = report.cuda;
  topology.notes.insert(topology.notes.end(), report.notes.begin(), report.notes.end());
  number_gpus(topology, report);
  add_missing(topology, report);
  describe_gpus(topology, report);
  add_nvlinks(topology, report);
}

}  // namespace waywiser
