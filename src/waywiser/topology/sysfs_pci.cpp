#include <algorithm>
#include <charconv>
#include <map>

#include "waywiser/topology/rates.hpp"
#include "waywiser/topology/sysfs_parts.hpp"

namespace waywiser {
namespace {

const std::string pci_folder = "/sys/bus/pci/devices/";
constexpr long long nvidia = 0x10de;
constexpr long long amd = 0x1002;
constexpr long long mellanox = 0x15b3;
constexpr std::string_view amd_note = "AMD GPUs: their xGMI links are not read, and only NVIDIA GPUs are measured";

struct Speed {
  int generation = 0, width = 0;
};

struct Function {
  std::string bus_id;
  std::string root;                    // "pci0000:00"
  std::vector<std::string> ancestors;  // bridges above it, the root port first
  long long class_code = 0;            // without the programming interface: 0x0302
  long long vendor = 0;
  long long device = 0;
  Speed now, most;
};

bool is_bus_id(std::string_view text) {
  return text.size() >= 12 && text[text.size() - 2] == '.' && text[text.size() - 5] == ':' &&
         text[text.size() - 8] == ':';
}

int generation(const std::optional<std::string>& speed) {
  if (!speed) return 0;
  constexpr std::pair<std::string_view, int> speeds[] = {{"2.5 ", 1}, {"5", 2},  {"8", 3},
                                                         {"16", 4},   {"32", 5}, {"64", 6}};
  const std::string_view number = std::string_view(*speed).substr(0, speed->find_first_of(". "));
  for (const auto& [text, value] : speeds)
    if (number == text || (value == 1 && speed->starts_with(text))) return value;
  return 0;
}

Speed speed(const SystemFiles& files, const std::string& folder, const std::string& which) {
  const auto width = files.number(folder + "/" + which + "_link_width");
  return {generation(files.line(folder + "/" + which + "_link_speed")),
          width && *width > 0 && *width <= 32 ? static_cast<int>(*width) : 0};
}

std::map<std::string, Function> functions(const SystemFiles& files) {
  std::map<std::string, Function> found;
  for (const std::string& bus_id : files.list(pci_folder)) {
    if (!is_bus_id(bus_id) || found.size() >= 65536) continue;
    const std::string folder = pci_folder + bus_id;
    Function function;
    function.bus_id = bus_id;
    for (const std::string& part : files.resolved(folder)) {
      if (part.starts_with("pci") && part.size() > 5 && part.find(':') != part.npos) function.root = part;
      if (is_bus_id(part) && part != bus_id) function.ancestors.push_back(part);
    }
    if (function.root.empty()) function.root = "pci" + bus_id.substr(0, bus_id.size() - 5);
    function.class_code = files.number(folder + "/class").value_or(0) >> 8;
    function.vendor = files.number(folder + "/vendor").value_or(0);
    function.device = files.number(folder + "/device").value_or(0);
    function.now = speed(files, folder, "current");
    function.most = speed(files, folder, "max");
    found[bus_id] = function;
  }
  return found;
}

std::string_view kind_of(const Function& function) {
  if (function.class_code == 0x0302) return "gpu";
  if (function.class_code == 0x0300 && function.vendor == nvidia) return "gpu";
  if ((function.class_code == 0x0380 || function.class_code == 0x1200) && function.vendor == amd) return "gpu";
  if (function.class_code == 0x0200 || function.class_code == 0x0207) return "nic";
  if (function.class_code == 0x0280 && function.vendor == mellanox) return "nic";  // others of 0280 are Wi-Fi
  return function.class_code == 0x0108 ? "nvme" : "";
}

std::string hexadecimal(long long number) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (int shift = 12; shift >= 0; shift -= 4) text += digits[static_cast<std::size_t>((number >> shift) & 15)];
  return text;
}

std::string name_of(const SystemFiles& files, const Function& function, std::string_view kind) {
  const std::string folder = pci_folder + function.bus_id;
  if (kind == "gpu")
    for (const std::string& line : files.lines("/proc/driver/nvidia/gpus/" + function.bus_id + "/information"))
      if (line.starts_with("Model:")) return line.substr(std::min(line.size(), line.find_first_not_of(" \t", 6)));
  if (kind == "nvme")
    for (const std::string& drive : files.list(folder + "/nvme"))
      return files.line(folder + "/nvme/" + drive + "/model").value_or(drive);
  return "PCI " + hexadecimal(function.vendor) + ":" + hexadecimal(function.device);
}

// Which NUMA node a function belongs to. Virtual machines and some firmware say -1.
class NumaNodes {
 public:
  NumaNodes(const SystemFiles& files, const Topology& topology) : files_(files) {
    for (const Device& device : topology.devices)
      if (device.kind == "host") nodes_[device.numa] = parse_cpulist(device.cores);
  }

  int of(const Function& function, std::vector<std::string>& notes) {
    if (const int node = told(function.bus_id); node >= 0) return node;
    for (auto bridge = function.ancestors.rbegin(); bridge != function.ancestors.rend(); ++bridge)
      if (const int node = told(*bridge); node >= 0)
        return noted(function, node, "that of its bridge " + *bridge, notes);
    if (nodes_.size() == 1) return only_node();
    std::vector<std::string> places = function.ancestors;
    places.push_back(function.bus_id);
    for (auto place = places.rbegin(); place != places.rend(); ++place)
      if (const int node = by_cpus(*place); node >= 0) return noted(function, node, "by its local CPUs", notes);
    notes.push_back(function.bus_id + " names no NUMA node and none could be found out");
    return -1;
  }

  // One line for an assumption about many functions.
  void sum_up(std::vector<std::string>& notes) const {
    if (assumed_ > 0)
      notes.push_back(std::to_string(assumed_) + (assumed_ == 1 ? " PCI device names" : " PCI devices name") +
                      " no NUMA node: node " + std::to_string(nodes_.begin()->first) + " is assumed, the only one");
  }

 private:
  int only_node() {
    ++assumed_;
    return nodes_.begin()->first;
  }
  static int noted(const Function& function, int node, const std::string& how, std::vector<std::string>& notes) {
    notes.push_back(function.bus_id + " names no NUMA node: node " + std::to_string(node) + " is assumed, " + how);
    return node;
  }
  int told(const std::string& bus_id) const {
    const auto node = files_.number(pci_folder + bus_id + "/numa_node");
    return node && nodes_.contains(static_cast<int>(*node)) ? static_cast<int>(*node) : -1;
  }
  int by_cpus(const std::string& bus_id) const {
    const std::vector<int> local = parse_cpulist(files_.line(pci_folder + bus_id + "/local_cpulist").value_or(""));
    for (const auto& [node, cpus] : nodes_)
      if (!local.empty() && std::ranges::includes(cpus, local)) return node;
    return -1;
  }
  const SystemFiles& files_;
  std::map<int, std::vector<int>> nodes_;
  int assumed_ = 0;
};

// Adds roots, switches and bridges as endpoints need them, and links between them.
class Tree {
 public:
  Tree(const SystemFiles& files, Topology& topology)
      : files_(files), topology_(topology), numa_(files, topology), functions_(functions(files)) {}

  void build() {
    for (const auto& [bus_id, function] : functions_) {
      const std::string_view kind = kind_of(function);
      if (kind.empty()) continue;
      if (files_.exists(pci_folder + bus_id + "/physfn"))
        ++virtual_functions_;
      else
        add_endpoint(function, std::string(kind));
    }
    numa_.sum_up(topology_.notes);
    if (virtual_functions_ > 0)
      topology_.notes.push_back(std::to_string(virtual_functions_) + " virtual functions are left out");
    if (functions_.empty()) topology_.notes.push_back("/sys shows no PCI devices");
    if (amd_) topology_.notes.emplace_back(amd_note);
    name_cards();
  }

 private:
  void add_endpoint(const Function& function, const std::string& kind) {
    Device device{next_id(kind),
                  kind,
                  name_of(files_, function, kind),
                  function.bus_id,
                  numa_.of(function, topology_.notes),
                  "",
                  0,
                  {}};
    device.cores = files_.line(pci_folder + function.bus_id + "/local_cpulist").value_or("");
    device.attributes["pci"] = hexadecimal(function.vendor) + ":" + hexadecimal(function.device);
    const std::string parent = add_above(function, device.numa);
    Link link = pcie_link(parent, device.id, function, function.ancestors.empty() ? "" : function.ancestors.back());
    if (kind == "gpu") {
      device.attributes["gpu_links"] = "unknown";  // NVML knows
      amd_ = amd_ || function.vendor == amd;
      expect_idle_gpu(link, device);
    }
    topology_.devices.push_back(device);
    topology_.links.push_back(link);
  }

  // The device that the endpoint hangs on. Ports come in pairs below the root port: up and down make a switch.
  std::string add_above(const Function& function, int numa) {
    std::string parent = add_root(function.root, numa);
    for (std::size_t i = 1; i < function.ancestors.size(); i += 2) {
      const bool has_downstream = i + 1 < function.ancestors.size();
      const std::string& up = function.ancestors[i];
      const auto [entry, fresh] = ids_.emplace(up, "");
      if (fresh) {
        entry->second = next_id(has_downstream ? "switch" : "bridge");
        const auto port = functions_.find(up);
        const Function& facts = port == functions_.end() ? function : port->second;
        const std::string name = has_downstream ? "PCIe switch" : "PCI bridge";
        topology_.devices.push_back({entry->second,
                                     has_downstream ? "switch" : "bridge",
                                     name,
                                     up,
                                     numa,
                                     "",
                                     0,
                                     {{"pci", hexadecimal(facts.vendor) + ":" + hexadecimal(facts.device)}}});
        topology_.links.push_back(pcie_link(parent, entry->second, facts, function.ancestors[i - 1]));
      }
      parent = entry->second;
    }
    return parent;
  }

  std::string add_root(const std::string& name, int numa) {
    const auto [entry, fresh] = ids_.emplace(name, "");
    if (!fresh) return entry->second;
    entry->second = next_id("root");
    topology_.devices.push_back({entry->second, "root", "root complex " + name.substr(3), "", numa, "", 0, {}});
    Link link{cpu_of(numa), entry->second, "internal"};
    link.source = "inside the package; no limit is known";
    if (!link.a.empty()) topology_.links.push_back(link);
    return entry->second;
  }

  std::string cpu_of(int numa) const {
    std::string first;
    for (const Link& link : topology_.links) {
      if (link.kind != "memory") continue;
      if (first.empty()) first = link.b;
      if (topology_.at(link.a).numa == numa) return link.b;
    }
    return first;
  }

  Link pcie_link(const std::string& parent, const std::string& child, const Function& function,
                 const std::string& port) const {
    Link link{parent, child, "pcie"};
    link.generation = function.now.generation;
    link.width = function.now.width;
    const auto above = functions_.find(port);
    const auto both = [](int below, int over) { return over > 0 && below > 0 ? std::min(below, over) : below; };
    const Speed most = above == functions_.end() ? Speed{} : above->second.most;
    link.max_generation = std::max(link.generation, both(function.most.generation, most.generation));
    link.max_width = std::max(link.width, both(function.most.width, most.width));
    if (link.generation == 0) link.source = "the PCI link speed is not visible";
    return link;
  }

  // Idle GPUs lower their link's generation, so only the width says that something is wrong.
  void expect_idle_gpu(Link& link, Device& gpu) {
    if (link.generation == 0 || link.generation >= link.max_generation) return;
    const std::string now = "generation " + std::to_string(link.generation);
    gpu.attributes["link_now"] = now;
    topology_.notes.push_back(gpu.id + ": PCIe link at " + now + " of " + std::to_string(link.max_generation) +
                              " when read; idle GPUs do that, so the rate is given for generation " +
                              std::to_string(link.max_generation));
    link.generation = link.max_generation;
  }

  // Ports of one card share its PCIe link.
  void name_cards() {
    std::map<std::string, int> functions_of_card;
    const auto card = [](const Device& device) { return device.bus_id.substr(0, device.bus_id.size() - 2); };
    for (const Device& device : topology_.devices)
      if (device.kind == "nic") ++functions_of_card[card(device)];
    for (Device& device : topology_.devices)
      if (device.kind == "nic" && functions_of_card[card(device)] > 1) device.attributes["card"] = card(device);
  }

  std::string next_id(const std::string& kind) { return kind + std::to_string(numbers_[kind]++); }

  const SystemFiles& files_;
  Topology& topology_;
  NumaNodes numa_;
  std::map<std::string, Function> functions_;
  std::map<std::string, std::string> ids_;  // of roots, switches and bridges, by name or bus id
  std::map<std::string, int> numbers_;
  int virtual_functions_ = 0;
  bool amd_ = false;
};

}  // namespace

void read_pci_tree(const SystemFiles& files, Topology& topology) { Tree(files, topology).build(); }

}  // namespace waywiser
