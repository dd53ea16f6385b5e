#include "waywiser/topology/topology.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/topology/made_up_machines.hpp"
#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

Topology small() {
  Topology topology = made_up::two_packages();
  made_up::add_on(topology, "gpu0", "gpu", "root0");
  made_up::add_on(topology, "gpu1", "gpu", "root1", 4, 8);
  made_up::join(topology, "gpu0", "gpu1", "nvlink", 3, 0, 4);
  fill_rates(topology);
  return topology;
}

std::string refusal(const Json& value) {
  try {
    topology_from_json(value, "machine.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_input);
    return error.what();
  }
  return "accepted";
}

TEST(Topology, JsonComesBackAsItWas) {
  Topology topology = small();
  topology.notes = {"a note"};
  topology.software = {{"driver", "580.1"}};
  topology.devices.back().attributes["nvlinks"] = "12";
  EXPECT_EQ(topology_from_json(to_json(topology), "machine.json"), topology);
}

TEST(Topology, PlacesAreHostsThenGpus) {
  EXPECT_EQ(places(small()), (std::vector<std::string>{"host0", "host1", "gpu0", "gpu1"}));
}

TEST(Topology, RatesFollowFromGenerationAndWidth) {
  const Topology topology = small();
  EXPECT_NEAR(*topology.links[5].nominal, 31.508e9, 1e6);
  EXPECT_NEAR(*topology.links[6].nominal, 15.754e9, 1e6);
  EXPECT_DOUBLE_EQ(*topology.links[7].nominal, 100e9);
  EXPECT_LT(*topology.links[5].achievable, *topology.links[5].nominal);
  EXPECT_FALSE(topology.links[0].nominal.has_value());
  EXPECT_FALSE(pcie_rate(7, 16).has_value());
  EXPECT_FALSE(pcie_rate(3, 0).has_value());
  EXPECT_NEAR(nvlink_rate(4, 18)->nominal, 478.116e9, 1);
}

TEST(Topology, GivenRatesAreKept) {
  Json value = to_json(small());
  value["links"][5]["nominal"] = 1e9;
  value["links"][5]["source"] = "measured";
  const Topology topology = topology_from_json(value, "machine.json");
  EXPECT_EQ(topology.links[5].nominal, 1e9);
  EXPECT_EQ(topology.links[5].source, "measured");
}

TEST(Topology, FingerprintIsOfHardwareAndDriverNotOfIdleLinks) {
  const Topology topology = small();
  Topology idle = topology;
  idle.links[5].generation = 1;
  idle.name = "another name";
  idle.notes = {"note"};
  EXPECT_EQ(fingerprint(idle), fingerprint(topology));
  Topology driver = topology;
  driver.software["driver"] = "581";
  EXPECT_NE(fingerprint(driver), fingerprint(topology));
  Topology fewer = topology;
  fewer.links.back().count = 3;
  EXPECT_NE(fingerprint(fewer), fingerprint(topology));
}

TEST(Topology, BadFilesAreRefusedInOneLine) {
  const Json good = to_json(small());
  const auto changed = [&](auto change) {
    Json value = good;
    change(value);
    return refusal(value);
  };
  EXPECT_EQ(refusal(good), "accepted");
  EXPECT_EQ(changed([](Json& v) { v["devices"][1]["id"] = "host0"; }), "machine.json: two devices are called 'host0'");
  EXPECT_EQ(changed([](Json& v) { v["links"][0]["a"] = "gpu9"; }),
            "machine.json: a link ends at 'gpu9', which is not a device");
  EXPECT_EQ(changed([](Json& v) { v["devices"][0]["kind"] = "toaster"; }),
            "machine.json: host0 has the unknown kind 'toaster'");
  EXPECT_EQ(changed([](Json& v) { v["links"][7]["kind"] = "string"; }),
            "machine.json: link gpu0 - gpu1 has the unknown kind 'string'");
  EXPECT_EQ(changed([](Json& v) { v["links"][7]["b"] = "gpu0"; }),
            "machine.json: link gpu0 - gpu0 joins a device to itself");
  EXPECT_EQ(changed([](Json& v) { v["links"][7]["count"] = 0; }),
            "machine.json: link gpu0 - gpu1: count must be from 1 to 65536");
  EXPECT_EQ(changed([](Json& v) { v["links"][7]["nominal"] = -1; }),
            "machine.json: link gpu0 - gpu1: rates must be positive and finite, in bytes per second");
  EXPECT_EQ(changed([](Json& v) { v["version"] = 2; }),
            "machine.json: version 2 of waywiser.topology cannot be read here, expected 1");
  EXPECT_EQ(changed([](Json& v) { v["kind"] = "invented"; }),
            "machine.json: 'kind' must be published, recorded, discovered or synthetic");
  EXPECT_EQ(changed([](Json& v) { v["devices"][6]["id"] = "gpu00"; }),
            "machine.json: the gpu 'gpu00' must be called gpu0, gpu1, ...");
  EXPECT_NE(changed([](Json& v) { v["devices"] = 3; }), "accepted");
  EXPECT_NE(changed([](Json& v) { v["software"] = "x"; }), "accepted");
  EXPECT_NE(changed([](Json& v) { v["devices"][0]["memory_bytes"] = -5; }), "accepted");
}

TEST(Topology, TooManyDevicesAreRefused) {
  Topology topology;
  topology.name = "huge";
  for (int i = 0; i < 600; ++i) made_up::add(topology, "gpu" + std::to_string(i), "gpu");
  EXPECT_EQ(refusal(to_json(topology)), "machine.json: more than 512 memories and NICs");
  for (int i = 0; i < 5000; ++i) made_up::add(topology, "switch" + std::to_string(i), "switch");
  EXPECT_NE(refusal(to_json(topology)).find("more than 4096 devices"), std::string::npos);
}

}  // namespace
}  // namespace waywiser
