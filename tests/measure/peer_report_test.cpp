#include "waywiser/measure/peer_report.hpp"

#include <gtest/gtest.h>

#include "waywiser/device/virtual_gpu/virtual_machine.hpp"

namespace waywiser {
namespace {

// Two GPUs with `count` NVLinks between them that carry 20 GB/s each.
Topology two_gpus(int count) {
  Topology topology;
  topology.name = "two";
  for (const char* id : {"gpu0", "gpu1"}) {
    Device device;
    device.id = id;
    device.kind = "gpu";
    topology.devices.push_back(device);
  }
  Link link;
  link.a = "gpu0";
  link.b = "gpu1";
  link.kind = "nvlink";
  link.count = count;
  link.nominal = 25e9 * count;
  link.achievable = 20e9 * count;
  topology.links.push_back(link);
  return topology;
}

struct NvlinkCase {
  int stated;
  BytesPerSecond rate;
  int inferred;
  bool mismatch;
};

TEST(PeerReport, NvlinksAreInferredFromTheRate) {
  const NvlinkCase cases[] = {{18, 360e9, 18, false}, {18, 342e9, 17, false}, {18, 310e9, 16, true},
                              {4, 60e9, 3, false},    {2, 21e9, 1, true},     {4, 12e9, 1, true},
                              {2, 65e9, 3, true}};
  for (const NvlinkCase& test : cases) {
    const auto count = count_nvlinks(two_gpus(test.stated), 0, 1, test.rate);
    ASSERT_TRUE(count);
    EXPECT_EQ(count->stated, test.stated);
    EXPECT_EQ(count->inferred, test.inferred);
    EXPECT_EQ(count->mismatch, test.mismatch) << test.stated << " stated, " << test.inferred << " inferred";
  }
}

TEST(PeerReport, WithoutNvlinksNoneAreCounted) {
  Topology topology = two_gpus(2);
  topology.links.clear();
  EXPECT_FALSE(count_nvlinks(topology, 0, 1, 1e9));
  EXPECT_FALSE(count_nvlinks(topology, 0, 7, 1e9));
}

TEST(PeerReport, CoversEveryPairAndSaysWhatIsNotPossible) {
  VirtualMachine machine;
  machine.gpus = 3;
  machine.no_peer_access = {{"", "", "apart"}, {"", "", "apart"}, {"apart", "apart", ""}};
  const auto platform = open_virtual_platform(machine);
  const Json report = peer_report(*platform, two_gpus(2), 4096, {});
  EXPECT_TRUE(report.at("simulated").get<bool>());
  EXPECT_EQ(report.at("connectivity"), Json::parse("[[true,true,false],[true,true,false],[false,false,true]]"));
  for (const char* quantity : {"one_way", "both_ways", "latency_gpu", "latency_cpu"}) {
    const Json& on = report.at(quantity).at("on");
    EXPECT_TRUE(on[0][1].is_number()) << quantity;
    EXPECT_TRUE(on[1][0].is_number()) << quantity;
    EXPECT_TRUE(on[0][2].is_null()) << quantity;
  }
  EXPECT_EQ(report.at("nvlinks").at("stated")[0][1], 2);
  EXPECT_FALSE(report.at("notes").empty());  // a virtual GPU has no driver that stages
}

TEST(PeerReport, StopsWhenAskedAndKeepsWhatItHas) {
  VirtualMachine machine;
  machine.gpus = 2;
  const auto platform = open_virtual_platform(machine);
  int calls = 0;
  const Json report = peer_report(*platform, two_gpus(2), 4096, [&](const Progress&) { return ++calls < 3; });
  EXPECT_EQ(calls, 3);
  EXPECT_TRUE(report.at("interrupted").get<bool>());
  EXPECT_TRUE(report.at("one_way").at("on")[0][1].is_number());
  EXPECT_TRUE(report.at("one_way").at("on")[1][1].is_null());
}

}  // namespace
}  // namespace waywiser
