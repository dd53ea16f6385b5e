#include "waywiser/topology/sysfs.hpp"

#include "waywiser/topology/rates.hpp"
#include "waywiser/topology/sysfs_parts.hpp"

namespace waywiser {

void read_software(const SystemFiles& files, Topology& topology) {
  const auto take = [&](const char* name, const char* file) {
    if (const auto text = files.line(file); text && !text->empty()) topology.software[name] = *text;
  };
  take("kernel", "/proc/sys/kernel/osrelease");
  take("driver", "/sys/module/nvidia/version");
  take("gdrdrv", "/sys/module/gdrdrv/version");
  if (files.exists("/sys/module/nvidia_peermem")) topology.software["nvidia_peermem"] = "loaded";
}

Topology read_system(const std::filesystem::path& root) {
  const SystemFiles files(root);
  Topology topology;
  topology.kind = "discovered";
  topology.name = files.line("/proc/sys/kernel/hostname").value_or("this machine");
  topology.source = "sysfs";
  read_software(files, topology);
  read_memory_and_cpus(files, topology);
  read_pci_tree(files, topology);
  read_network_ports(files, topology);
  fill_rates(topology);
  return topology;
}

}  // namespace waywiser
