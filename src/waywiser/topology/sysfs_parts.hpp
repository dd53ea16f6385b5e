#pragma once

#include "waywiser/topology/system_files.hpp"
#include "waywiser/topology/topology.hpp"

// The steps of read_system(), in this order; each adds its devices, links and notes.
namespace waywiser {

void read_memory_and_cpus(const SystemFiles& files, Topology& topology);
void read_pci_tree(const SystemFiles& files, Topology& topology);
void read_network_ports(const SystemFiles& files, Topology& topology);
void read_software(const SystemFiles& files, Topology& topology);

}  // namespace waywiser
