#include "waywiser/path/enumerate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "waywiser/path/third_gpu.hpp"
#include "waywiser/topology/virtual_machine.hpp"
#include "waywiser/transport/transport.hpp"

namespace waywiser {
namespace {

// Two sockets with two GPUs each; NVLinks make a ring 0-1-3-2-0 whose link 0-2 is twice as wide.
Topology ring() {
  Topology machine;
  machine.name = "ring";
  for (int node = 0; node < 2; ++node) {
    const std::string number = std::to_string(node);
    machine.devices.push_back({"cpu" + number, "cpu", "", "", node, "", 0, {}});
    machine.devices.push_back({"host" + number, "host", "", "", node, node == 0 ? "0-3" : "4,5", 0, {}});
    machine.devices.push_back({"root" + number, "root", "", "", node, "", 0, {}});
    machine.links.push_back({.a = "host" + number, .b = "cpu" + number, .kind = "memory"});
    machine.links.push_back({.a = "root" + number, .b = "cpu" + number, .kind = "pcie"});
  }
  machine.links.push_back({.a = "cpu0", .b = "cpu1", .kind = "socket"});
  for (int index = 0; index < 4; ++index) {
    const std::string id = "gpu" + std::to_string(index);
    machine.devices.push_back({id, "gpu", "", "", index / 2, "", 0, {{"multiprocessors", "20"}}});
    machine.links.push_back({.a = id, .b = "root" + std::to_string(index / 2), .kind = "pcie"});
  }
  const auto nvlink = [&](const char* a, const char* b, int count) {
    machine.links.push_back({.a = a, .b = b, .kind = "nvlink", .count = count, .nominal = 25e9 * count});
  };
  nvlink("gpu0", "gpu1", 1);
  nvlink("gpu1", "gpu3", 1);
  nvlink("gpu3", "gpu2", 1);
  nvlink("gpu2", "gpu0", 2);
  return machine;
}

std::set<std::string> names(const std::vector<Family>& families) {
  std::set<std::string> found;
  for (const Family& family : families) found.insert(family.base.mechanism);
  return found;
}

const Family* find(const std::vector<Family>& families, const std::string& text) {
  const auto found = std::ranges::find(families, text, [](const Family& family) { return label(family.base); });
  return found == families.end() ? nullptr : &*found;
}

TEST(Enumerate, BetweenHostMemories) {
  const auto found = families(ring(), host(0), host(0), 1);
  EXPECT_EQ(names(found), (std::set<std::string>{"host_copy"}));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].grid.at(0).values, (std::vector<std::string>{"1", "2", "4", "6"}));
  EXPECT_EQ(names(families(ring(), host(0), host(1), 2)), (std::set<std::string>{"host_copy", "ucx"}));
}

TEST(Enumerate, BetweenHostAndGpu) {
  const std::set<std::string> expected{"copy_engine", "sm_copy", "courier", "bar_copy", "host_staged"};
  const auto to_gpu = families(ring(), host(0), gpu(1), 1);
  EXPECT_EQ(names(to_gpu), expected);
  ASSERT_NE(find(to_gpu, "sm_copy(direction=pull)"), nullptr);
  EXPECT_EQ(find(to_gpu, "sm_copy(direction=push)"), nullptr);
  const auto from_gpu = families(ring(), gpu(1), host(0), 1);
  EXPECT_EQ(names(from_gpu), expected);
  EXPECT_NE(find(from_gpu, "sm_copy(direction=push)"), nullptr);
}

TEST(Enumerate, BetweenGpus) {
  const auto found = families(ring(), gpu(0), gpu(1), 1);
  EXPECT_EQ(names(found), (std::set<std::string>{"copy_engine", "sm_copy", "host_staged", "relay", "split"}));
  const Family* kernel = find(found, "sm_copy(direction=push)");
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->grid.at(0).values, (std::vector<std::string>{"1", "2", "4", "8", "16", "20"}));
  EXPECT_NE(find(found, "host_staged(variant=pipelined)"), nullptr);
}

TEST(Enumerate, WithinOneGpuNothingIsStaged) {
  EXPECT_EQ(names(families(ring(), gpu(0), gpu(0), 1)), (std::set<std::string>{"copy_engine", "sm_copy"}));
  EXPECT_FALSE(names(families(ring(), gpu(0), gpu(0), 2)).contains("relay"));
}

TEST(Enumerate, TwoProcessesNameTheKindOfHandle) {
  const auto found = families(ring(), gpu(0), gpu(1), 2);
  EXPECT_NE(find(found, "copy_engine(handle=cuda_ipc)"), nullptr);
  EXPECT_NE(find(found, "copy_engine(handle=descriptor)"), nullptr);
  EXPECT_NE(find(found, "copy_engine(direction=pull,handle=cuda_ipc)"), nullptr);
  EXPECT_NE(find(found, "host_staged(handle=cuda_ipc,variant=whole)"), nullptr);
  EXPECT_NE(find(found, "ucx(transports=cuda_ipc)"), nullptr);
  EXPECT_NE(find(families(ring(), gpu(0), host(0), 2), "copy_engine"), nullptr);
}

TEST(Enumerate, ThirdGpusThatBothReachComeFirstThenTheFaster) {
  const Topology machine = ring();
  const Graph graph(machine);
  // 0 and 3 have no link; 0-2-3 and 0-1-3 are both limited to one link. The lower number wins.
  EXPECT_EQ(third_gpus(graph, gpu(0), gpu(3)), (std::vector<Place>{gpu(1), gpu(2)}));
  EXPECT_EQ(third_gpus(graph, gpu(1), gpu(0)).size(), 2u);
  EXPECT_TRUE(own_nvlink(graph, gpu(0), gpu(2)));
  EXPECT_FALSE(own_nvlink(graph, gpu(0), gpu(3)));
}

TEST(Enumerate, TwoRelaysAreSplitWhereThereIsNoDirectLink) {
  const auto found = families(ring(), gpu(0), gpu(3), 1);
  const auto relays = std::ranges::count(found, "relay", [](const Family& family) { return family.base.mechanism; });
  EXPECT_EQ(relays, 2);
  const bool split = std::ranges::any_of(found, [](const Family& family) {
    return family.base.mechanism == "split" && family.base.parameter("ways") == "relay+relay";
  });
  EXPECT_TRUE(split);
}

TEST(Enumerate, ExpandGivesEveryCombinationOnce) {
  const Family family{{"relay", gpu(0), gpu(1), 1, {{"via", "gpu2"}}},
                      {{"chunk", {"1M", "4M"}}, {"depth", {"2", "3"}}}};
  std::vector<std::string> labels;
  for (const Path& path : expand(family)) labels.push_back(label(path));
  EXPECT_EQ(labels, (std::vector<std::string>{"relay(chunk=1M,depth=2,via=gpu2)", "relay(chunk=1M,depth=3,via=gpu2)",
                                              "relay(chunk=4M,depth=2,via=gpu2)", "relay(chunk=4M,depth=3,via=gpu2)"}));
  EXPECT_EQ(expand({{"copy_engine", gpu(0), gpu(1), 1, {}}, {}}).size(), 1u);
}

// The table answers for every enumerated path: a parameter that a mechanism does not know would throw here.
TEST(Enumerate, EveryPathIsAnsweredByItsMechanism) {
  const Topology machine = ring();
  const auto platform = open_virtual_platform(virtual_machine(machine));
  const std::vector<Place> places{host(0), host(1), gpu(0), gpu(1), gpu(3)};
  for (const Place source : places)
    for (const Place destination : places)
      for (const Family& family : families(machine, source, destination, 1))
        for (const Path& path : expand(family)) {
          const auto why = why_unavailable(path, {*platform});
          EXPECT_NE(why.value_or("?"), "") << label(path);
          if (!why) {
            EXPECT_NE(open_transport(path, {*platform}), nullptr) << label(path);
          }
        }
}

TEST(VirtualMachine, TakesPeerAccessAndNearestMemoryFromTheTopology) {
  const VirtualMachine machine = virtual_machine(ring());
  EXPECT_EQ(machine.gpus, 4);
  EXPECT_EQ(machine.host_nodes, 2);
  EXPECT_EQ(machine.host_of_gpu, (std::vector<int>{0, 0, 1, 1}));
  const auto platform = open_virtual_platform(machine);
  EXPECT_FALSE(platform->why_no_peer_access(0, 2));
  EXPECT_EQ(platform->why_no_peer_access(0, 3).value_or("none"),
            "GPU 0 cannot map GPU 3 (no peer access: different root complexes)");
  EXPECT_EQ(platform->nearest_host(3), host(1));
}

TEST(Enumerate, OfTwoProcessesOneCoreIsTheOthers) {
  Topology topology;
  topology.devices = {{"host0", "host", "", "", 0, "0-1", 0, {}}};
  EXPECT_EQ(families(topology, host(0), host(0), 1).front().grid.front().values.size(), 2u);
  EXPECT_EQ(families(topology, host(0), host(0), 2).front().grid.front().values, std::vector<std::string>{"1"});
}

}  // namespace
}  // namespace waywiser
