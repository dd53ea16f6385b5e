#pragma once

#include <filesystem>

#include "waywiser/topology/topology.hpp"

namespace waywiser {

// NUMA nodes, packages, the PCI tree with its GPUs, NICs and NVMe drives, and network ports, from /sys and /proc below
// `root` ("": this machine). Never throws for what a system does not show: it leaves a note instead.
Topology read_system(const std::filesystem::path& root);

}  // namespace waywiser
