#pragma once

#include <optional>
#include <string>
#include <vector>

#include "waywiser/base/units.hpp"
#include "waywiser/device/mapping.hpp"

namespace waywiser {

// The numbers of the NUMA nodes that have memory; {0} where the system does not say.
std::vector<int> numa_nodes();
// Pages of `mapping` that are touched from now on come from `node`. Nothing, or why the system refused.
std::optional<std::string> bind_to_node(const Mapping& mapping, int node);
// Nothing when bind_to_node works here, or when there is one node only.
std::optional<std::string> why_no_binding();
// The node that a PCI device ("0000:3b:00.0") is close to, or the first one when the system does not say.
int nearest_numa_node(const std::string& bus_id);
// What can still be allocated on `node`, within the limit of this process's control group.
Bytes free_memory_of_node(int node);

}  // namespace waywiser
