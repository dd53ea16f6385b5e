#include "waywiser/topology/nvml.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

#include "tests/topology/made_up_machines.hpp"
#include "waywiser/topology/relation.hpp"
#include "waywiser/topology/route.hpp"

namespace waywiser {
namespace {

using made_up::noted;

constexpr int ok = 0;
constexpr int not_supported = 3;

// Two GPUs: the first has 4 of 12 links up, to the second one.
int fake_state(NvmlDeviceHandle* device, unsigned link, int* up) {
  if (link >= 12) return not_supported;
  *up = (device == reinterpret_cast<NvmlDeviceHandle*>(1) || device == reinterpret_cast<NvmlDeviceHandle*>(2)) &&
        link < 4;
  return ok;
}

int number(NvmlDeviceHandle* device) { return static_cast<int>(reinterpret_cast<std::intptr_t>(device)); }

int fake_pci(NvmlDeviceHandle* device, NvmlPciInfo* info) {
  std::snprintf(info->bus_id, sizeof info->bus_id, "00000000:0%d:00.0", number(device));
  return ok;
}

int fake_remote(NvmlDeviceHandle* device, unsigned, NvmlPciInfo* info) {
  std::snprintf(info->bus_id, sizeof info->bus_id, "00000000:0%d:00.0", 3 - number(device));
  return ok;
}

NvmlFunctions fake() {
  NvmlFunctions nvml;
  nvml.init = [] { return ok; };
  nvml.shutdown = [] { return ok; };
  nvml.error_string = [](int) { return "made-up failure"; };
  nvml.driver_version = [](char* text, unsigned size) { return std::snprintf(text, size, "580.1"), ok; };
  nvml.cuda_version = [](int* version) { return *version = 13010, ok; };
  nvml.device_count = [](unsigned* count) { return *count = 2, ok; };
  nvml.device_by_index = [](unsigned index, NvmlDeviceHandle** device) {
    *device = reinterpret_cast<NvmlDeviceHandle*>(static_cast<std::intptr_t>(index) + 1);
    return ok;
  };
  nvml.device_name = [](NvmlDeviceHandle*, char* text, unsigned size) {
    return std::snprintf(text, size, "NVIDIA A100-SXM4-80GB"), ok;
  };
  nvml.pci_info = fake_pci;
  nvml.memory_info = [](NvmlDeviceHandle*, NvmlMemory* memory) { return memory->total = 80ull << 30, ok; };
  nvml.compute_capability = [](NvmlDeviceHandle*, int* major, int* minor) { return *major = 8, *minor = 0, ok; };
  nvml.nvlink_state = fake_state;
  nvml.nvlink_remote_pci = fake_remote;
  nvml.nvlink_remote_type = [](NvmlDeviceHandle*, unsigned, int* type) { return *type = 0, ok; };
  nvml.p2p_status = [](NvmlDeviceHandle* a, NvmlDeviceHandle*, int, int* status) {
    return *status = number(a) == 1 ? 0 : 1, ok;
  };
  return nvml;
}

Topology on_the_bus() {
  Topology topology = made_up::two_packages();
  made_up::add_on(topology, "gpu0", "gpu", "root0");
  made_up::add_on(topology, "gpu1", "gpu", "root0");
  made_up::add_on(topology, "gpu2", "gpu", "root1");
  topology.devices[6].bus_id = "0000:02:00.0";  // the other way round than NVML counts
  topology.devices[7].bus_id = "0000:01:00.0";
  topology.devices[8].bus_id = "0000:09:00.0";
  for (const std::size_t gpu : {6u, 7u}) topology.devices[gpu].attributes["gpu_links"] = "unknown";
  return topology;
}

TEST(Nvml, ReadsWhatTheLibrarySays) {
  const NvmlReport report = read_nvml(fake());
  ASSERT_FALSE(report.why_not);
  EXPECT_EQ(report.driver, "580.1");
  EXPECT_EQ(report.cuda, "13.1");
  ASSERT_EQ(report.gpus.size(), 2u);
  EXPECT_EQ(report.gpus[0].bus_id, "0000:01:00.0");
  EXPECT_EQ(report.gpus[0].nvlinks, 12u);
  EXPECT_EQ(report.gpus[0].active.size(), 4u);
  EXPECT_EQ(report.gpus[1].peers[0], "the chipset does not support it");
}

TEST(Nvml, FourOfTwelveLinksUp) {
  Topology topology = on_the_bus();
  apply_nvml(topology, read_nvml(fake()));
  validate(topology, "test");
  EXPECT_EQ(topology.at("gpu0").bus_id, "0000:01:00.0");  // numbered as NVML counts
  EXPECT_EQ(relation(topology, "gpu0", "gpu1"), "NV4");
  EXPECT_DOUBLE_EQ(*route(topology, "gpu0", "gpu1").limit, 100e9);
  EXPECT_EQ(topology.at("gpu0").attributes.at("nvlinks_active"), "4");
  EXPECT_TRUE(noted(topology, "gpu0: 4 of 12 NVLinks are up"));
  EXPECT_FALSE(topology.at("gpu0").attributes.contains("gpu_links"));  // told, so no longer open
  EXPECT_FALSE(why_no_peer_access(topology, "gpu0", "gpu1"));
  EXPECT_TRUE(why_no_peer_access(topology, "gpu1", "gpu0"));
  EXPECT_EQ(topology.software.at("driver"), "580.1");
}

TEST(Nvml, GpusOfOthersAreLeftOut) {
  Topology topology = on_the_bus();
  apply_nvml(topology, read_nvml(fake()));
  EXPECT_EQ(topology.ids("gpu").size(), 2u);
  EXPECT_TRUE(noted(topology, "1 GPUs are on the bus but not visible"));
}

TEST(Nvml, GpusWithoutSysAreHungOnARoot) {
  Topology topology = made_up::two_packages();
  apply_nvml(topology, read_nvml(fake()));
  validate(topology, "test");
  EXPECT_TRUE(noted(topology, "gpu0 is not in /sys"));
  EXPECT_EQ(relation(topology, "gpu0", "host0"), "PHB");
}

TEST(Nvml, SwitchesThatAVirtualMachineHides) {
  NvmlFunctions nvml = fake();
  nvml.nvlink_remote_type = [](NvmlDeviceHandle*, unsigned, int* type) { return *type = 2, ok; };
  nvml.nvlink_remote_pci = [](NvmlDeviceHandle*, unsigned, NvmlPciInfo* info) {
    return std::snprintf(info->bus_id, sizeof info->bus_id, "FFFFFFFF:FF:FF.0"), ok;
  };
  nvml.compute_capability = [](NvmlDeviceHandle*, int* major, int*) { return *major = 9, ok; };
  nvml.field_values = [](NvmlDeviceHandle*, int, NvmlFieldValue* value) {
    value->result = ok;
    value->value_type = 1;
    value->value.whole = 26562;
    return ok;
  };
  Topology topology = on_the_bus();
  apply_nvml(topology, read_nvml(nvml));
  EXPECT_EQ(relation(topology, "gpu0", "gpu1"), "NV4");
  EXPECT_EQ(topology.ids("nvswitch").size(), 1u);
  EXPECT_FALSE(topology.at("nvswitch0").attributes.contains("switches"));
  EXPECT_DOUBLE_EQ(*route(topology, "gpu0", "gpu1").limit, 4 * 26.562e9);
}

TEST(Nvml, FailuresAreNotes) {
  NvmlFunctions nvml = fake();
  nvml.init = [] { return 9; };
  EXPECT_EQ(read_nvml(nvml).why_not, "NVML does not start: made-up failure");
  EXPECT_EQ(read_nvml(NvmlFunctions{}).why_not, "NVML lacks the functions that list GPUs");
  NvmlFunctions bare;  // only what listing needs
  bare.init = fake().init;
  bare.device_count = fake().device_count;
  bare.device_by_index = [](unsigned, NvmlDeviceHandle**) { return 15; };
  const NvmlReport report = read_nvml(bare);
  EXPECT_TRUE(report.gpus.empty());
  ASSERT_EQ(report.notes.size(), 2u);
  EXPECT_EQ(report.notes[0], "NVML does not open GPU 0: error 15");
  Topology topology = made_up::two_packages();
  apply_nvml(topology, read_nvml(NvmlFunctions{}));
  EXPECT_TRUE(noted(topology, "NVML lacks"));
}

}  // namespace
}  // namespace waywiser
