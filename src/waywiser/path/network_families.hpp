#pragma once

#include "waywiser/path/enumerate.hpp"
#include "waywiser/topology/network_side.hpp"

namespace waywiser {

// Every candidate between a memory here and one of the machine at the other end of the network: UCX over each transport
// and pair of devices; for GPU memory with GPUDirect RDMA and GDRCopy each on and off, and staged through host memory;
// TLS between hosts. Parameter device=HERE, or HERE/THERE if the names differ; for several rails, all and
// of many two, device=A+B with share=75+25.
std::vector<Family> network_families(const NetworkSide& here, const NetworkSide& there, Place source,
                                     Place destination);

// "a/b+c" -> "a/b", "c".
std::vector<std::string_view> rails_of(std::string_view device);
// The parameter as the other end writes it: "a/b+c" -> "b/a+c".
std::string turned_device(std::string_view device);
// This end's device of each rail.
std::vector<std::string> devices_here(std::string_view device);

}  // namespace waywiser
