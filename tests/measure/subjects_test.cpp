#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "waywiser/device/virtual_gpu/virtual_machine.hpp"
#include "waywiser/measure/machine.hpp"

namespace waywiser {
namespace {

// The topology says nothing about multiprocessors: the device does.
TEST(Subjects, CopiesByKernelsHaveAsManyBlocksAsTheGpuHasMultiprocessors) {
  Topology topology;
  topology.name = "one GPU";
  topology.devices = {{"cpu0", "cpu", "", "", 0, "", 0, {}},
                      {"host0", "host", "", "", 0, "0-3", 0, {}},
                      {"gpu0", "gpu", "", "", 0, "", 0, {}}};
  topology.links = {{.a = "host0", .b = "cpu0", .kind = "memory"}, {.a = "gpu0", .b = "cpu0", .kind = "pcie"}};
  VirtualMachine machine;
  machine.gpus = 1;
  machine.multiprocessors = 46;
  const auto platform = open_virtual_platform(machine);
  CampaignOptions options;
  options.processes = {1};
  std::size_t kernels = 0;
  for (const Subject& subject : subjects(topology, *platform, options))
    for (const Family& family : subject.families)
      if (family.base.mechanism == "sm_copy") {
        ++kernels;
        EXPECT_EQ(family.grid.at(0).values, (std::vector<std::string>{"1", "2", "4", "8", "16", "32", "46"}));
      }
  EXPECT_GE(kernels, 3u);
}

}  // namespace
}  // namespace waywiser
