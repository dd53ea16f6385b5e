#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "waywiser/topology/rates.hpp"
#include "waywiser/topology/topology.hpp"

// Machines for tests: topologies made by hand, and folders that look like /sys.
namespace waywiser::made_up {

inline void join(Topology& topology, const std::string& a, const std::string& b, const std::string& kind,
                 int generation = 0, int width = 0, int count = 1) {
  Link link{a, b, kind};
  link.generation = link.max_generation = generation;
  link.width = link.max_width = width;
  link.count = count;
  topology.links.push_back(link);
}

inline void add(Topology& topology, const std::string& id, const std::string& kind, int numa = 0) {
  topology.devices.push_back({id, kind, kind, "", numa, "", 0, {}});
}

// Two packages with one NUMA node and one root complex each.
inline Topology two_packages() {
  Topology topology;
  topology.name = "made up";
  for (const std::string n : {"0", "1"}) {
    const int numa = n == "0" ? 0 : 1;
    add(topology, "host" + n, "host", numa);
    add(topology, "cpu" + n, "cpu", -1);
    add(topology, "root" + n, "root", numa);
    join(topology, "host" + n, "cpu" + n, "memory");
    join(topology, "cpu" + n, "root" + n, "internal");
  }
  join(topology, "cpu0", "cpu1", "socket");
  return topology;
}

inline void add_on(Topology& topology, const std::string& id, const std::string& kind, const std::string& parent,
                   int generation = 4, int width = 16) {
  add(topology, id, kind, topology.at(parent).numa);
  join(topology, parent, id, "pcie", generation, width);
}

// A folder that is removed again, with files as /sys has them.
class FakeSystem {
 public:
  FakeSystem() {
    std::string name = (std::filesystem::temp_directory_path() / "waywiser-sysfs-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  FakeSystem(const FakeSystem&) = delete;
  FakeSystem& operator=(const FakeSystem&) = delete;
  ~FakeSystem() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }

  const std::filesystem::path& root() const { return root_; }

  void file(const std::string& inside, const std::string& text) const {
    const std::filesystem::path path = root_ / inside;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << '\n';
  }

  void cpus(const std::string& online) const { file("sys/devices/system/cpu/online", online); }
  void node(int number, const std::string& cpus, const std::string& kilobytes) const {
    const std::string folder = "sys/devices/system/node/node" + std::to_string(number);
    file(folder + "/cpulist", cpus);
    file(folder + "/meminfo", "Node " + std::to_string(number) + " MemTotal:   " + kilobytes + " kB");
  }
  void package(int cpu, int number) const {
    file("sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/physical_package_id", std::to_string(number));
  }

  // `place` is the way from the host bridge: "pci0000:00/0000:00:01.0/0000:01:00.0".
  std::string pci(const std::string& place, const std::string& class_code, const std::string& vendor = "0x10de",
                  const std::string& numa = "-1", const std::string& now = "16.0 GT/s PCIe", int width = 16,
                  const std::string& most = "16.0 GT/s PCIe", int most_width = 16) const {
    const std::string folder = "sys/devices/" + place;
    file(folder + "/class", class_code);
    file(folder + "/vendor", vendor);
    file(folder + "/device", "0x1234");
    file(folder + "/numa_node", numa);
    file(folder + "/current_link_speed", now);
    file(folder + "/current_link_width", std::to_string(width));
    file(folder + "/max_link_speed", most);
    file(folder + "/max_link_width", std::to_string(most_width));
    const std::string bus_id = place.substr(place.rfind('/') + 1);
    std::filesystem::create_directories(root_ / "sys/bus/pci/devices");
    std::filesystem::create_symlink(root_ / folder, root_ / "sys/bus/pci/devices" / bus_id);
    return folder;
  }

  void link(const std::string& from, const std::string& to) const {
    std::filesystem::create_directories((root_ / from).parent_path());
    std::filesystem::create_symlink(root_ / to, root_ / from);
  }

 private:
  std::filesystem::path root_;
};

// Whether one of its notes has these words.
inline bool noted(const Topology& topology, std::string_view words) {
  return std::ranges::any_of(topology.notes, [&](const std::string& note) { return note.find(words) != note.npos; });
}

}  // namespace waywiser::made_up
