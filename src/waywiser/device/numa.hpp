#pragma once

#include <optional>
#include <string>
#include <vector>

#include "waywiser/base/units.hpp"
#include "waywiser/device/mapping.hpp"

namespace waywiser {

// The NUMA nodes that have memory; {0} if the system does not say.
std::vector<int> numa_nodes();
// Pages of `mapping` touched from now on come from `node`. Empty, or why the system refused.
std::optional<std::string> bind_to_node(const Mapping& mapping, int node);
// Empty if bind_to_node works here, or if there is only one node.
std::optional<std::string> why_no_binding();
// The node near a PCI device ("0000:3b:00.0"), or the first one if the system does not say.
int nearest_numa_node(const std::string& bus_id);
// The memory that can still be allocated on `node`, within the limit of this process's control group.
Bytes free_memory_of_node(int node);

}  // namespace waywiser
