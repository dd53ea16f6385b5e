#include "waywiser/topology/sysfs.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/topology/made_up_machines.hpp"
#include "waywiser/topology/discover.hpp"
#include "waywiser/topology/relation.hpp"
#include "waywiser/topology/system_files.hpp"

namespace waywiser {
namespace {

using made_up::noted;

using made_up::FakeSystem;

const Link& link_to(const Topology& topology, std::string_view id) {
  return *std::ranges::find(topology.links, id, &Link::b);
}

FakeSystem& two_nodes(FakeSystem& system) {
  system.cpus("0-3");
  system.node(0, "0-1", "1000");
  system.node(1, "2-3", "2000");
  for (int cpu = 0; cpu < 4; ++cpu) system.package(cpu, cpu / 2);
  return system;
}

TEST(Sysfs, CpulistsInBothDirections) {
  EXPECT_EQ(parse_cpulist("0-2,8"), (std::vector<int>{0, 1, 2, 8}));
  EXPECT_EQ(format_cpulist({8, 1, 0, 2}), "0-2,8");
  EXPECT_EQ(parse_cpulist("x,3-,-,1"), (std::vector<int>{1}));
  EXPECT_TRUE(parse_cpulist("0-99999999").empty());
}

TEST(Sysfs, AnEmptySystemIsOneMemoryAndNotes) {
  const FakeSystem system;
  const Topology topology = discover(system.root());
  EXPECT_EQ(places(topology), (std::vector<std::string>{"host0"}));
  EXPECT_TRUE(noted(topology, "no NUMA nodes"));
  EXPECT_TRUE(noted(topology, "no PCI devices"));
}

TEST(Sysfs, CachesOfTheCores) {
  const FakeSystem system;
  system.cpus("0-1");
  system.node(0, "0-1", "1000");
  const std::string folder = "sys/devices/system/cpu/cpu0/cache/index";
  const std::vector<std::vector<std::string>> caches{
      {"1", "Data", "48K"}, {"1", "Instruction", "32K"}, {"2", "Unified", "2048K"}, {"3", "Unified", "x"}};
  for (std::size_t i = 0; i < caches.size(); ++i) {
    const std::string cache = folder + std::to_string(i);
    system.file(cache + "/level", caches[i][0]);
    system.file(cache + "/type", caches[i][1]);
    system.file(cache + "/size", caches[i][2]);
  }
  const Device cpu = discover(system.root()).at("cpu0");
  EXPECT_EQ(cpu.attributes.at("l1_data_bytes"), "49152");
  EXPECT_EQ(cpu.attributes.at("l2_bytes"), "2097152");
  EXPECT_EQ(cpu.attributes.size(), 2u);
}

// A virtual machine has no bridges, and its numa_node is -1.
TEST(Sysfs, FlatTreeOfAVirtualMachine) {
  const FakeSystem system;
  system.cpus("0-3");
  system.node(0, "0-3", "4000");
  for (const char* slot : {"06", "07"})
    system.pci("pci0000:00/0000:00:" + std::string(slot) + ".0", "0x030200", "0x10de", "-1", "32.0 GT/s PCIe", 16,
               "32.0 GT/s PCIe", 16);
  const Topology topology = discover(system.root());
  EXPECT_EQ(topology.ids("gpu").size(), 2u);
  EXPECT_EQ(relation(topology, "gpu0", "gpu1"), "PHB");
  EXPECT_EQ(topology.at("gpu0").numa, 0);
  EXPECT_EQ(topology.at("gpu0").bus_id, "0000:00:06.0");
  EXPECT_TRUE(noted(topology, "2 PCI devices name no NUMA node"));
  EXPECT_NEAR(*link_to(topology, "gpu0").nominal, 63.015e9, 1e6);
}

TEST(Sysfs, PortsBelowARootPortAreASwitch) {
  FakeSystem system;
  two_nodes(system);
  const std::string root = "pci0000:10/0000:10:01.0";
  system.pci(root, "0x060400", "0x8086", "0");
  system.pci(root + "/0000:11:00.0", "0x060400", "0x11f8", "0");
  system.pci(root + "/0000:11:00.0/0000:12:00.0", "0x060400", "0x11f8", "0");
  system.pci(root + "/0000:11:00.0/0000:12:01.0", "0x060400", "0x11f8", "0");
  system.pci(root + "/0000:11:00.0/0000:12:00.0/0000:13:00.0", "0x030200", "0x10de", "0");
  system.pci(root + "/0000:11:00.0/0000:12:01.0/0000:14:00.0", "0x020700", "0x15b3", "0");
  system.pci("pci0000:80/0000:80:01.0", "0x060400", "0x8086", "1");
  system.pci("pci0000:80/0000:80:01.0/0000:81:00.0", "0x030200", "0x10de", "1");
  const Topology topology = discover(system.root());
  EXPECT_EQ(topology.ids("switch").size(), 1u);
  EXPECT_EQ(topology.at("switch0").bus_id, "0000:11:00.0");
  EXPECT_EQ(relation(topology, "gpu0", "nic0"), "PIX");
  EXPECT_EQ(relation(topology, "gpu0", "gpu1"), "SYS");
  EXPECT_EQ(topology.ids("cpu").size(), 2u);
  EXPECT_EQ(topology.at("gpu1").numa, 1);
}

TEST(Sysfs, NumaNodeFromABridgeOrFromLocalCpus) {
  FakeSystem system;
  two_nodes(system);
  system.pci("pci0000:80/0000:80:01.0", "0x060400", "0x8086", "1");
  system.pci("pci0000:80/0000:80:01.0/0000:81:00.0", "0x030200", "0x10de", "-1");
  const std::string other = system.pci("pci0000:90/0000:90:01.0", "0x030200", "0x10de", "-1");
  system.file(other + "/local_cpulist", "2-3");
  system.pci("pci0000:a0/0000:a0:01.0", "0x030200", "0x10de", "-1");
  const Topology topology = discover(system.root());
  EXPECT_EQ(topology.at("gpu0").numa, 1);
  EXPECT_TRUE(noted(topology, "that of its bridge 0000:80:01.0"));
  EXPECT_EQ(topology.at("gpu1").numa, 1);
  EXPECT_TRUE(noted(topology, "by its local CPUs"));
  EXPECT_EQ(topology.at("gpu2").numa, -1);
  EXPECT_TRUE(noted(topology, "0000:a0:01.0 names no NUMA node and none could be found out"));
}

TEST(Sysfs, AGpuWithHalfItsLanesIsSeenAnIdleOneIsNot) {
  FakeSystem system;
  two_nodes(system);
  system.pci("pci0000:00/0000:00:01.0", "0x060400", "0x8086", "0", "2.5 GT/s PCIe", 8, "16.0 GT/s PCIe", 16);
  system.pci("pci0000:00/0000:00:01.0/0000:01:00.0", "0x030200", "0x10de", "0", "2.5 GT/s PCIe", 8, "32.0 GT/s PCIe",
             16);
  const Topology topology = discover(system.root());
  const Link& link = link_to(topology, "gpu0");
  EXPECT_EQ(link.width, 8);
  EXPECT_EQ(link.max_width, 16);
  EXPECT_EQ(link.generation, 4);  // what device and port both can
  EXPECT_TRUE(link.trained_down());
  EXPECT_NEAR(*link.nominal, 15.754e9, 1e6);
  EXPECT_TRUE(noted(topology, "idle GPUs do that"));
  EXPECT_EQ(topology.at("gpu0").attributes.at("link_now"), "generation 1");
}

TEST(Sysfs, TwoPortsOfOneCardShareItsLink) {
  FakeSystem system;
  two_nodes(system);
  for (const std::string port : {"0", "1"}) {
    const std::string name = "mlx5_" + port;
    const std::string device = system.pci("pci0000:00/0000:00:02." + port, "0x020700", "0x15b3", "0");
    system.file(device + "/infiniband/" + name + "/ports/1/rate", "100 Gb/sec (4X EDR)");
    system.file(device + "/infiniband/" + name + "/ports/1/link_layer", port == "0" ? "InfiniBand" : "Ethernet");
    system.file(device + "/infiniband/" + name + "/ports/1/state", port == "0" ? "4: ACTIVE" : "1: DOWN");
    system.link(device + "/infiniband/" + name + "/device", device);
    system.link("sys/class/infiniband/" + name, device + "/infiniband/" + name);
  }
  const Topology topology = discover(system.root());
  EXPECT_EQ(topology.at("nic0").name, "mlx5_0");
  EXPECT_EQ(topology.at("nic0").attributes.at("card"), topology.at("nic1").attributes.at("card"));
  EXPECT_EQ(topology.at("nic1").attributes.at("port1.state"), "1: DOWN");
  EXPECT_EQ(topology.ids("network").size(), 1u);
  EXPECT_DOUBLE_EQ(*link_to(topology, "network0").nominal, 12.5e9);
}

TEST(Sysfs, EthernetSpeedAndVirtualFunctions) {
  FakeSystem system;
  two_nodes(system);
  const std::string device = system.pci("pci0000:00/0000:00:03.0", "0x020000", "0x8086", "0");
  system.file(device + "/net/eth0/speed", "25000");
  system.link(device + "/net/eth0/device", device);
  system.link("sys/class/net/eth0", device + "/net/eth0");
  const std::string function = system.pci("pci0000:00/0000:00:03.1", "0x020000", "0x8086", "0");
  system.link(function + "/physfn", device);
  const Topology topology = discover(system.root());
  EXPECT_EQ(topology.ids("nic"), (std::vector<std::string>{"nic0"}));
  EXPECT_EQ(topology.at("nic0").name, "eth0");
  EXPECT_DOUBLE_EQ(*link_to(topology, "network0").nominal, 3.125e9);
  EXPECT_TRUE(noted(topology, "1 virtual functions are left out"));
}

TEST(Sysfs, WhatTheBusDoesNotTellIsOpen) {
  FakeSystem system;
  two_nodes(system);
  system.pci("pci0000:00/0000:00:05.0", "0x030200", "0x10de", "0");
  system.pci("pci0000:00/0000:00:06.0", "0x120000", "0x1002", "0");
  system.pci("pci0000:00/0000:00:07.0", "0x028000", "0x15b3", "0");
  system.pci("pci0000:00/0000:00:08.0", "0x028000", "0x8086", "0");
  const Topology topology = discover(system.root());
  EXPECT_EQ(topology.at("gpu0").attributes.at("gpu_links"), "unknown");  // NVML knows
  EXPECT_TRUE(noted(topology, "AMD GPUs: their xGMI links are not read"));
  EXPECT_EQ(topology.ids("nic"), (std::vector<std::string>{"nic0"}));  // ConnectX-3, and no Wi-Fi
  EXPECT_EQ(topology.at("nic0").bus_id, "0000:00:07.0");
}

TEST(Sysfs, RubbishInFilesDoesNoHarm) {
  FakeSystem system;
  two_nodes(system);
  system.file("sys/devices/system/node/nodeX/cpulist", "0");
  system.file("sys/devices/system/node/node99999/cpulist", "0");
  system.pci("pci0000:00/0000:00:04.0", "0x030200", "\xff\xfe", "99", "fast", -3, "", 1 << 20);
  const Topology topology = discover(system.root());
  EXPECT_EQ(topology.ids("gpu").size(), 1u);
  EXPECT_FALSE(link_to(topology, "gpu0").nominal.has_value());
  EXPECT_EQ(topology.ids("host").size(), 2u);
}

}  // namespace
}  // namespace waywiser
