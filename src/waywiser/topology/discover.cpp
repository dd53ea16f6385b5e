#include "waywiser/topology/discover.hpp"

#include "waywiser/topology/nvml.hpp"
#include "waywiser/topology/sysfs.hpp"

namespace waywiser {

Topology discover(const std::filesystem::path& root) {
  Topology topology = read_system(root);
  if (root.empty()) apply_nvml(topology, read_nvml());
  validate(topology, "this machine");
  return topology;
}

}  // namespace waywiser
