#pragma once

#include <optional>
#include <string>
#include <vector>

#include "waywiser/topology/nvml_library.hpp"
#include "waywiser/topology/topology.hpp"

namespace waywiser {

enum class NvlinkEnd { gpu, cpu, nvswitch, unknown };

struct NvmlLink {
  NvlinkEnd end = NvlinkEnd::unknown;
  std::string bus_id;  // of the other end, in the form of sysfs
};

struct NvmlGpu {
  std::string name;
  std::string bus_id;  // "0000:3b:00.0"
  Bytes memory_bytes = 0;
  double memory_bandwidth = 0;  // bytes per second, from bus width and clock; 0: unknown
  int compute_major = 0;
  int pcie_generation = 0;  // of device and slot together
  int pcie_width = 0;
  int pcie_width_now = 0;
  unsigned nvlinks = 0;                    // that the GPU has
  std::vector<NvmlLink> active;            // that are up
  std::optional<double> nvlink_megabytes;  // per second, link and direction
  std::vector<std::string> peers;          // "ok" or why not, towards each GPU; empty text when unknown
};

// What the driver says about the GPUs that this process may see.
struct NvmlReport {
  std::optional<std::string> why_not;  // no NVML, no driver
  std::string driver;
  std::string cuda;
  std::vector<NvmlGpu> gpus;
  std::vector<std::string> notes;
};

NvmlReport read_nvml(const NvmlFunctions& nvml);
// Opens libnvidia-ml.so.1, or what WAYWISER_LIBNVML names.
NvmlReport read_nvml();

// Puts what NVML knows into a topology read from /sys: GPU numbers as CUDA has them in PCI order, names, NVLinks, peer
// access. GPUs that NVML does not show are removed, as this process cannot use them.
void apply_nvml(Topology& topology, const NvmlReport& report);

}  // namespace waywiser
