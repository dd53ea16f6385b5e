#pragma once

#include "waywiser/device/virtual_gpu/virtual_machine.hpp"
#include "waywiser/topology/topology.hpp"

namespace waywiser {

// Virtual GPUs with the peer access of the machine that `topology` describes, and its number of host memories.
// Throws invalid_input unless the GPUs and hosts are numbered 0, 1, 2, ...
VirtualMachine virtual_machine(const Topology& topology);

}  // namespace waywiser
