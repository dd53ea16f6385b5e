#include "waywiser/path/network_families.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "waywiser/base/error.hpp"
#include "waywiser/measure/pair_buffers.hpp"
#include "waywiser/transport/ucx/ucx_selection.hpp"

namespace waywiser {
namespace {

using Names = std::vector<std::string>;

const Place there = seen_from_other(host(0));
const NetworkDevice eth{"eth0", false, {"10.0.0.0/24"}}, ens{"ens5", false, {"10.0.0.0/24"}};
const NetworkDevice second{"eth1", false, {"10.0.1.0/24"}}, card{"mlx5_0:1", true, {"10.0.0.0/24"}};

Names labels(const std::vector<Family>& families) {
  Names found;
  for (const Family& family : families) found.push_back(label(family.base));
  return found;
}

TEST(NetworkFamilies, DevicesInOneNetworkAreJoinedAndMissingOnesHaveAPathToBeRefused) {
  const NetworkSide here{"a", "1", 0, {eth, second}}, other{"b", "2", 0, {second, ens}};
  EXPECT_EQ(labels(network_families(here, other, host(0), there)),
            (Names{"ucx(transports=rc)", "ucx(transports=dc)", "ucx(transports=ud)",
                   "ucx(device=eth0/ens5,transports=network-tcp)", "ucx(device=eth1,transports=network-tcp)",
                   "ucx(device=eth0/ens5+eth1,transports=network-tcp)", "tls(by=openssl,device=eth0/ens5)",
                   "tls(by=kernel,device=eth0/ens5)", "tls(by=openssl,device=eth1)", "tls(by=kernel,device=eth1)"}));
}

TEST(NetworkFamilies, GpuMemoryHasFourSettingsOfRdmaAndTwoOfTcp) {
  const NetworkSide side{"a", "1", 1, {eth, card}};
  const auto families = network_families(side, side, gpu(0), seen_from_other(gpu(0)));
  const auto count = [&](std::string_view mechanism, std::string_view transport) {
    return std::ranges::count_if(families, [&](const Family& family) {
      return family.base.mechanism == mechanism && family.base.parameters.at("transports") == transport;
    });
  };
  EXPECT_EQ(count("ucx", "rc"), 4);
  EXPECT_EQ(count("ucx", "network-tcp"), 2);
  EXPECT_EQ(count("ucx_staged", "rc"), 3);
  EXPECT_EQ(families.size(), 3u * (4 + 3) + 2 + 3);
  const UcxSelection road = ucx_rails(families[1].base).at(0);
  EXPECT_EQ(road.transports, "rc,cuda_copy,gdr_copy");
  const Path to_a_gpu = network_families(side, side, host(0), seen_from_other(gpu(0)))[1].base;
  EXPECT_EQ(ucx_rails(to_a_gpu).at(0).transports, "rc");  // this end may have none
  EXPECT_EQ(road.devices, "mlx5_0:1");
  EXPECT_EQ(road.settings, (decltype(road.settings){{"IB_GPU_DIRECT_RDMA", "no"}}));
}

TEST(NetworkFamilies, OfManyDevicesInOneNetworkEachIsTriedWithOneAtTheOtherEnd) {
  NetworkSide side{"a", "1", 0, {}};
  for (int i = 0; i < 4; ++i) side.devices.push_back({"mlx5_" + std::to_string(i) + ":1", true, {"InfiniBand"}});
  const auto families = network_families(side, side, host(0), there);
  EXPECT_EQ(families.size(), 3u * (4 + 2) + 1);
  EXPECT_EQ(label(families[4].base), "ucx(device=mlx5_0:1+mlx5_1:1,transports=rc)");
  EXPECT_EQ(label(families[5].base), "ucx(device=mlx5_0:1+mlx5_1:1+mlx5_2:1+mlx5_3:1,transports=rc)");
  EXPECT_EQ(label(families[3].base), "ucx(device=mlx5_3:1,transports=rc)");
}

// With names as long as UCX allows, on eight rails that are called differently at the two ends.
TEST(NetworkFamilies, EveryPathCanBeWrittenAndReadAgain) {
  NetworkSide here{"a", "1", 1, {}}, other{"b", "2", 1, {}};
  for (int i = 0; i < 10; ++i)
    for (NetworkSide* side : {&here, &other})
      side->devices.push_back(
          {side->machine + std::string(30, 'x') + std::to_string(i), true, {"net " + std::to_string(i)}});
  for (const Family& family : network_families(here, other, gpu(0), seen_from_other(gpu(0))))
    for (const Path& path : expand(family)) EXPECT_EQ(path_from_json(to_json(path), "path"), path);
}

TEST(NetworkFamilies, TheOtherEndTurnsThePathRound) {
  const Path path{"ucx", host(0), there, 2, {{"transports", "network-tcp"}, {"device", "a/b+c"}, {"share", "75+25"}}};
  const Path back = outgoing_path(path, Role::peer);
  EXPECT_EQ(pair_text(back), "host0>>other:host0");
  EXPECT_EQ(label(back), "ucx(device=b/a+c,share=75+25,transports=network-tcp)");
  EXPECT_EQ(ucx_rails(back).at(0).devices, "b");
  EXPECT_EQ(ucx_rails(back).at(1).devices, "c");
}

TEST(NetworkSide, ReadsBackAndRefusesWhatIsNone) {
  const NetworkSide side = network_side_from_json(to_json({"a", "1", 2, {eth, card}}), "side");
  EXPECT_EQ(side.gpus, 2);
  EXPECT_EQ(side.devices.at(1).name, "mlx5_0:1");
  EXPECT_TRUE(side.devices.at(1).rdma);
  EXPECT_THROW(network_side_from_json(Json::array(), "side"), Error);
  EXPECT_THROW(network_side_from_json({{"machine", "a"}, {"fingerprint", "1"}, {"gpus", -1}}, "side"), Error);
}

}  // namespace
}  // namespace waywiser
