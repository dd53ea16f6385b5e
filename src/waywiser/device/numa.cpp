#include "waywiser/device/numa.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>
#include <sstream>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr int policy_bind = 2;  // MPOL_BIND
constexpr int most_nodes = 1024;

std::string first_line(const std::string& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

// "0-1,4": the format of the kernel's lists.
std::vector<int> parse_list(const std::string& text) {
  std::vector<int> numbers;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    int first = 0;
    int last = 0;
    char dash = 0;
    std::istringstream range(part);
    if (!(range >> first)) continue;
    if (!(range >> dash >> last)) last = first;
    for (int number = first; number <= std::min(last, most_nodes - 1); ++number) numbers.push_back(number);
  }
  return numbers;
}

// The sum of the named entries of a node's meminfo, in bytes.
Bytes node_memory(int node, const std::vector<std::string>& names) {
  std::ifstream stream("/sys/devices/system/node/node" + std::to_string(node) + "/meminfo");
  Bytes sum = 0;
  for (std::string word, number, name; stream >> word >> number >> name;) {  // "Node 0 MemFree: 123 kB"
    Bytes kilobytes = 0;
    if (stream >> kilobytes && std::ranges::find(names, name) != names.end()) sum += kilobytes * 1024;
    stream.clear();
    stream.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return sum;
}

Bytes system_memory() {
  std::ifstream stream("/proc/meminfo");
  Bytes kilobytes = 0;
  for (std::string name; stream >> name >> kilobytes;) {
    if (name == "MemAvailable:") return kilobytes * 1024;
    stream.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return 0;
}

Bytes left_in_control_group() {
  Bytes most = 0;
  Bytes used = 0;
  std::ifstream limit("/sys/fs/cgroup/memory.max");
  std::ifstream current("/sys/fs/cgroup/memory.current");
  if (!(limit >> most) || !(current >> used)) return std::numeric_limits<Bytes>::max();  // "max", or no such group
  return most > used ? most - used : 0;
}

}  // namespace

std::vector<int> numa_nodes() {
  std::vector<int> nodes = parse_list(first_line("/sys/devices/system/node/has_memory"));
  return nodes.empty() ? std::vector<int>{0} : nodes;
}

std::optional<std::string> bind_to_node(const Mapping& mapping, int node) {
  constexpr int bits = static_cast<int>(8 * sizeof(unsigned long));
  std::array<unsigned long, most_nodes / bits> mask{};
  mask.at(static_cast<std::size_t>(node / bits)) = 1ul << (node % bits);
  if (::syscall(SYS_mbind, mapping.data(), mapping.length(), policy_bind, mask.data(), most_nodes, 0) == 0) return {};
  return "memory cannot be bound to NUMA node " + std::to_string(node) + ": " + last_system_error();
}

std::optional<std::string> why_no_binding() {
  const std::vector<int> nodes = numa_nodes();
  if (nodes.size() == 1) return {};
  return bind_to_node(Mapping::anonymous(1, "host"), nodes.back());
}

int nearest_numa_node(const std::string& bus_id) {
  const std::vector<int> nodes = numa_nodes();
  std::istringstream text(first_line("/sys/bus/pci/devices/" + bus_id + "/numa_node"));
  int node = -1;
  text >> node;
  return std::ranges::find(nodes, node) == nodes.end() ? nodes.front() : node;
}

Bytes free_memory_of_node(int node) {
  const Bytes free = node_memory(node, {"MemFree:", "Inactive(file):"});
  return std::min(free == 0 ? system_memory() : free, left_in_control_group());
}

}  // namespace waywiser
