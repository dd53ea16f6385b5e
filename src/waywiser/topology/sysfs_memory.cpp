#include <charconv>
#include <map>
#include <set>

#include "waywiser/topology/sysfs_parts.hpp"

namespace waywiser {
namespace {

const std::string cpu_folder = "/sys/devices/system/cpu/cpu";
const std::string node_folder = "/sys/devices/system/node/";

std::vector<int> online_cpus(const SystemFiles& files) {
  return parse_cpulist(files.line("/sys/devices/system/cpu/online").value_or("0"));
}

// "Node 0 MemTotal:       65800000 kB", or "MemTotal: ..." of /proc/meminfo.
Bytes total_memory(const SystemFiles& files, const std::string& file) {
  for (const std::string& line : files.lines(file)) {
    const auto found = line.find("MemTotal:");
    if (found == std::string::npos) continue;
    const auto digits = line.find_first_of("0123456789", found);
    Bytes kilobytes = 0;
    if (digits != std::string::npos) std::from_chars(line.data() + digits, line.data() + line.size(), kilobytes);
    return kilobytes < (Bytes{1} << 48) ? kilobytes * 1024 : 0;
  }
  return 0;
}

std::string cpu_model(const SystemFiles& files) {
  for (const std::string& line : files.lines("/proc/cpuinfo")) {
    const auto colon = line.find(':');
    const bool model = line.starts_with("model name") || line.starts_with("cpu\t") || line.starts_with("cpu  ");
    if (model && colon != std::string::npos && colon + 2 <= line.size()) return line.substr(colon + 2);
  }
  return "CPU";
}

// The cores of the machine counted from 0 without hyperthreads, as schedulers do: by the first CPU of each.
std::map<int, int> core_numbers(const SystemFiles& files) {
  std::map<int, int> numbers;
  for (const int cpu : online_cpus(files)) {
    const auto siblings = files.line(cpu_folder + std::to_string(cpu) + "/topology/thread_siblings_list");
    const std::vector<int> all = parse_cpulist(siblings.value_or(std::to_string(cpu)));
    if (all.empty() || all.front() == cpu) numbers.emplace(cpu, static_cast<int>(numbers.size()));
  }
  return numbers;
}

std::string cores_among(const std::map<int, int>& numbers, const std::vector<int>& cpus) {
  std::vector<int> cores;
  for (const int cpu : cpus)
    if (const auto found = numbers.find(cpu); found != numbers.end()) cores.push_back(found->second);
  return format_cpulist(cores);
}

Device host_device(const SystemFiles& files, int node, const std::vector<int>& cpus, Bytes memory) {
  Device host{"host" + std::to_string(node),
              "host",
              "NUMA node " + std::to_string(node),
              "",
              node,
              format_cpulist(cpus),
              memory,
              {}};
  if (const std::string cores = cores_among(core_numbers(files), cpus); !cores.empty() && cores != host.cores)
    host.attributes["core_numbers"] = cores;
  if (const auto distances = files.line(node_folder + "node" + std::to_string(node) + "/distance"))
    host.attributes["distances"] = *distances;
  return host;
}

std::vector<Device> hosts(const SystemFiles& files, Topology& topology) {
  std::vector<Device> found;
  std::map<int, std::string> nodes;  // in the order of their numbers
  for (const std::string& name : files.list(node_folder)) {
    int node = -1;
    if (!name.starts_with("node")) continue;
    const auto [rest, problem] = std::from_chars(name.data() + 4, name.data() + name.size(), node);
    if (problem == std::errc{} && *rest == '\0' && node >= 0 && node < 4096) nodes[node] = name;
  }
  for (const auto& [node, name] : nodes) {
    const std::vector<int> cpus = parse_cpulist(files.line(node_folder + name + "/cpulist").value_or(""));
    const Bytes memory = total_memory(files, node_folder + name + "/meminfo");
    if (cpus.empty())
      topology.notes.push_back("NUMA node " + std::to_string(node) + " has no CPUs and is left out");
    else
      found.push_back(host_device(files, node, cpus, memory));
  }
  if (found.empty()) {
    topology.notes.push_back("/sys shows no NUMA nodes: all memory is taken as node 0");
    found.push_back(host_device(files, 0, online_cpus(files), total_memory(files, "/proc/meminfo")));
  }
  return found;
}

int package_of(const SystemFiles& files, int cpu) {
  const auto package = files.number(cpu_folder + std::to_string(cpu) + "/topology/physical_package_id");
  return package && *package >= 0 && *package < 4096 ? static_cast<int>(*package) : 0;
}

// The first data cache and the second cache of a core: "48K" is 48 KiB.
std::map<std::string, std::string> caches_of(const SystemFiles& files, int cpu) {
  std::map<std::string, std::string> found;
  const std::string folder = cpu_folder + std::to_string(cpu) + "/cache/index";
  for (int index = 0; index < 8; ++index) {
    const std::string cache = folder + std::to_string(index);
    const auto level = files.number(cache + "/level");
    const std::string type = files.line(cache + "/type").value_or("Instruction");
    const std::string size = files.line(cache + "/size").value_or("");
    Bytes kilobytes = 0;
    const auto [rest, problem] = std::from_chars(size.data(), size.data() + size.size(), kilobytes);
    if (type == "Instruction" || problem != std::errc{} || rest + 1 != size.data() + size.size() || *rest != 'K')
      continue;
    if (kilobytes == 0 || kilobytes > (1 << 20)) continue;
    if (level == 1 || level == 2) found[level == 1 ? "l1_data_bytes" : "l2_bytes"] = std::to_string(kilobytes * 1024);
  }
  return found;
}

}  // namespace

void read_memory_and_cpus(const SystemFiles& files, Topology& topology) {
  const std::vector<Device> memories = hosts(files, topology);
  std::map<int, std::vector<int>> packages;
  for (const Device& host : memories)
    for (const int cpu : parse_cpulist(host.cores)) packages[package_of(files, cpu)].push_back(cpu);
  const std::string model = cpu_model(files);
  for (const Device& host : memories) topology.devices.push_back(host);
  std::map<int, std::string> package_ids;
  for (const auto& [package, cpus] : packages) {
    const std::string id = "cpu" + std::to_string(package_ids.size());
    topology.devices.push_back({id, "cpu", model, "", -1, format_cpulist(cpus), 0, caches_of(files, cpus.front())});
    for (const auto& [number, other] : package_ids) {
      Link socket{other, id, "socket"};
      socket.source = "the rate between packages is not visible to software";
      topology.links.push_back(socket);
    }
    package_ids[package] = id;
  }
  for (const Device& host : memories) {
    Link memory{host.id, package_ids[package_of(files, parse_cpulist(host.cores).front())], "memory"};
    memory.source = "the type of memory is not visible to software without privileges";
    topology.links.push_back(memory);
  }
}

}  // namespace waywiser
