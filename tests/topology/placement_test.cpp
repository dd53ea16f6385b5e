#include "waywiser/topology/placement.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/topology/made_up_machines.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/topology/relation.hpp"
#include "waywiser/topology/route.hpp"

namespace waywiser {
namespace {

std::string gpu(int number) { return "gpu" + std::to_string(number); }

Topology random_machine(std::mt19937& random, int gpus) {
  Topology topology = made_up::two_packages();
  const auto upto = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most)); };
  for (int i = 0; i < gpus; ++i)
    made_up::add_on(topology, gpu(i), "gpu", upto(2) == 0 ? "root0" : "root1", 3 + upto(2), upto(4) == 0 ? 8 : 16);
  for (int i = 0; i < gpus; ++i)
    for (int j = i + 1; j < gpus; ++j)
      if (upto(3) == 0) made_up::join(topology, gpu(i), gpu(j), "nvlink", 2, 0, 1 + upto(3));
  fill_rates(topology);
  return topology;
}

struct Value {
  int without = 0;
  double slowest = 1e30;
  double all = 0;
};

Value value_of(const Topology& topology, const std::vector<int>& chosen) {
  Value value;
  for (const int i : chosen) {
    for (const int j : chosen) {
      if (i >= j) continue;
      value.without += !relation(topology, gpu(i), gpu(j)).starts_with("NV");
      const double rate = *route(topology, gpu(i), gpu(j)).limit;
      value.slowest = std::min(value.slowest, rate);
      value.all += rate;
    }
  }
  return value;
}

TEST(Placement, IsTheBestOfAllChoices) {
  std::mt19937 random(20240607);
  for (int round = 0; round < 20; ++round) {
    const int gpus = 5;
    const int count = 2 + round % 3;
    const Topology topology = random_machine(random, gpus);
    Value best{1000, 0, 0};
    for (unsigned set = 0; set < (1u << gpus); ++set) {
      std::vector<int> chosen;
      for (int i = 0; i < gpus; ++i)
        if ((set >> i & 1u) != 0) chosen.push_back(i);
      if (static_cast<int>(chosen.size()) != count) continue;
      const Value value = value_of(topology, chosen);
      const auto key = [](const Value& v) { return std::tuple(-v.without, v.slowest, v.all); };
      if (key(value) > key(best)) best = value;
    }
    const Placement placement = place_gpus(topology, count, false);
    EXPECT_TRUE(placement.exact);
    EXPECT_EQ(placement.pairs_without_nvlink, best.without);
    EXPECT_DOUBLE_EQ(placement.slowest_pair, best.slowest);
    EXPECT_NEAR(placement.all_pairs, best.all, 1);
  }
}

TEST(Placement, EqualChoicesGiveTheLowestNumbers) {
  Topology topology = made_up::two_packages();
  for (int i = 0; i < 4; ++i) made_up::add_on(topology, gpu(i), "gpu", "root0");
  fill_rates(topology);
  EXPECT_EQ(place_gpus(topology, 2, false).cuda_visible_devices, "0,1");
}

TEST(Placement, NicsDecideBetweenEqualsAndAreSharedOut) {
  Topology topology = made_up::two_packages();
  for (int i = 0; i < 4; ++i) made_up::add_on(topology, gpu(i), "gpu", i < 2 ? "root0" : "root1");
  made_up::add_on(topology, "nic0", "nic", "root1");
  made_up::add_on(topology, "nic1", "nic", "root1");
  fill_rates(topology);
  EXPECT_EQ(place_gpus(topology, 2, false).cuda_visible_devices, "0,1");
  const Placement placement = place_gpus(topology, 2, true);
  EXPECT_EQ(placement.cuda_visible_devices, "2,3");
  EXPECT_EQ(placement.gpus[0].nic, "nic0");
  EXPECT_EQ(placement.gpus[1].nic, "nic1");
  EXPECT_EQ(placement.gpus[1].nic_relation, "PHB");
}

TEST(Placement, MoreThanSixteenGpusByImprovement) {
  Topology topology = made_up::two_packages();
  for (int i = 0; i < 20; ++i) made_up::add_on(topology, gpu(i), "gpu", "root0");
  made_up::join(topology, "gpu17", "gpu19", "nvlink", 3, 0, 4);
  fill_rates(topology);
  const Placement placement = place_gpus(topology, 2, false);
  EXPECT_FALSE(placement.exact);
  EXPECT_EQ(placement.gpus.size(), 2u);
}

TEST(Placement, TooManyOrTooFewIsRefused) {
  Topology topology = made_up::two_packages();
  made_up::add_on(topology, "gpu0", "gpu", "root0");
  EXPECT_THROW(place_gpus(topology, 2, false), Error);
  EXPECT_THROW(place_gpus(topology, 0, false), Error);
  EXPECT_EQ(place_gpus(topology, 1, true).cuda_visible_devices, "0");
}

Topology four_alike() {
  Topology topology = made_up::two_packages();
  made_up::add(topology, "nvswitch0", "nvswitch");
  for (int i = 0; i < 4; ++i) {
    made_up::add_on(topology, gpu(i), "gpu", "root0");
    made_up::join(topology, gpu(i), "nvswitch0", "nvlink", 4, 0, 18);
  }
  fill_rates(topology);
  return topology;
}

MeasuredRates all_at(BytesPerSecond rate) {
  MeasuredRates rates;
  for (int a = 0; a < 4; ++a)
    for (int b = 0; b < 4; ++b)
      if (a != b) rates[{gpu(a), gpu(b)}] = rate * (1 + 0.01 * ((a + b) % 3));  // a little noise
  return rates;
}

bool told(const Placement& placement, std::string_view words) {
  return std::ranges::any_of(placement.why, [&](const std::string& line) { return line.find(words) != line.npos; });
}

TEST(Placement, AMeasuredSlowLinkIsAvoidedAndNamed) {
  MeasuredRates rates = all_at(390e9);
  EXPECT_EQ(place_gpus(four_alike(), 2, false, rates).cuda_visible_devices, "0,1");  // noise decides nothing
  EXPECT_TRUE(place_gpus(four_alike(), 2, false, rates).odd.empty());
  rates[{"gpu1", "gpu0"}] = 98e9;
  const Placement pair = place_gpus(four_alike(), 2, false, rates);
  EXPECT_EQ(pair.cuda_visible_devices, "0,2");
  ASSERT_EQ(pair.odd.size(), 1u);
  EXPECT_EQ(pair.odd[0].a + pair.odd[0].b, "gpu0gpu1");
  EXPECT_DOUBLE_EQ(pair.odd[0].rate, 98e9);
  EXPECT_TRUE(told(pair, "gpu0 - gpu1 is odd: 98.0 GB/s measured, pairs like it 39"));
  EXPECT_TRUE(told(pair, "avoided"));
  const Placement three = place_gpus(four_alike(), 3, false, rates);
  EXPECT_EQ(three.cuda_visible_devices, "0,2,3");
  const Placement all = place_gpus(four_alike(), 4, false, rates);
  EXPECT_TRUE(told(all, "no better choice avoids it"));
  EXPECT_DOUBLE_EQ(all.slowest_pair, 98e9);
}

TEST(Placement, LinksThatNobodyToldAreNotDenied) {
  Topology topology = made_up::two_packages();
  for (int i = 0; i < 3; ++i) made_up::add_on(topology, gpu(i), "gpu", "root0");
  for (Device& device : topology.devices)
    if (device.kind == "gpu") device.attributes["gpu_links"] = "unknown";
  made_up::join(topology, "gpu1", "gpu2", "nvlink", 4, 0, 18);
  fill_rates(topology);
  const Placement placement = place_gpus(topology, 3, false);
  EXPECT_EQ(placement.pairs_unknown, 2);
  EXPECT_TRUE(told(placement, "whether NVLinks join 2 of 3 pairs is not known"));
  EXPECT_FALSE(told(placement, "no NVLink"));
  for (const std::string& line : placement.gres_conf) EXPECT_EQ(line.find("Links=-"), line.npos);
  EXPECT_EQ(place_gpus(topology, 2, false).cuda_visible_devices, "1,2");
}

TEST(Placement, GresConf) {
  Topology topology = made_up::two_packages();
  for (int i = 0; i < 2; ++i) made_up::add_on(topology, gpu(i), "gpu", "root0");
  for (Device& device : topology.devices) {
    if (device.kind == "gpu") device.name = "NVIDIA A100-SXM4-80GB";
    if (device.id == "host0") device.cores = "0-3,8-11";
    if (device.id == "host0") device.attributes["core_numbers"] = "0-3";
  }
  made_up::join(topology, "gpu0", "gpu1", "nvlink", 3, 0, 4);
  EXPECT_EQ(gres_conf(topology),
            (std::vector<std::string>{"Name=gpu Type=a100_sxm4_80gb File=/dev/nvidia0 Cores=0-3 Links=-1,4",
                                      "Name=gpu Type=a100_sxm4_80gb File=/dev/nvidia1 Cores=0-3 Links=4,-1"}));
}

}  // namespace
}  // namespace waywiser
