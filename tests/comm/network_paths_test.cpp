#include "waywiser/comm/network/network_paths.hpp"

#include <gtest/gtest.h>

#include "tests/comm/network_rows.hpp"
#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

TEST(NetworkPaths, BothEndsOfBothDirectionsNameTheirOwnDevice) {
  const Path path =
      network_path("ucx", gpu(0), host(0), {{"device", "a/b+c/d"}, {"share", "75+25"}, {"gdrcopy", "off"}});
  const NetworkPaths ways(plan_of_rows({row_of_path(path, 0, no_end)}));
  ASSERT_EQ(ways.all().size(), 1u);
  const NetworkPath& way = ways.all().front();
  EXPECT_EQ(way.percents, (std::vector<int>{75, 25}));
  EXPECT_TRUE(way.reads_gpus());
  const auto devices = [&](bool sends, bool turned) {
    std::string text;
    for (const UcxSelection& selection : way.selections(sends, turned))
      text += selection.devices + ":" + selection.transports + " ";
    return text;
  };
  EXPECT_EQ(devices(true, false), "a:tcp,cuda_copy c:tcp,cuda_copy ");
  EXPECT_EQ(devices(false, false), "b:tcp d:tcp ");
  EXPECT_EQ(devices(true, true), "b:tcp,cuda_copy d:tcp,cuda_copy ");
  EXPECT_EQ(devices(false, true), "a:tcp c:tcp ");
}

TEST(NetworkPaths, AreFoundByKindOfMemoryAndSize) {
  const NetworkPaths ways(plan_of_rows(with_gpu_row("ucx_staged", {{"variant", "whole"}})));
  const auto found = [&](Place source, Place destination, Bytes bytes) {
    return ways.find(source, destination, bytes, ways.ends(some_other_node, some_other_node, true), true);
  };
  EXPECT_EQ(found(host(1), host(0), 10), 0u);
  EXPECT_EQ(found(host(1), host(0), 1 << 20), 1u);
  EXPECT_EQ(found(gpu(5), gpu(3), 1 << 20), 2u);
  EXPECT_EQ(found(gpu(5), host(0), 1 << 20), std::nullopt);
  EXPECT_EQ(NetworkPaths({}).find(host(0), host(0), 10, {}, true), std::nullopt);
}

TEST(NetworkPaths, EndsAreThoseOfTheTypesOfNodes) {
  const NetworkPaths ways(plan_of_types());
  EXPECT_TRUE(ways.tells_nodes_apart());
  const auto ends = [&](const char* mine, const char* theirs, bool lower) {
    const PlanEnds found = ways.ends(node_type(mine), node_type(theirs), lower);
    return text_of_node(found.there) + (found.here ? " from here" : " to here");
  };
  for (const bool lower : {false, true}) {
    EXPECT_EQ(ends(first_node, second_node, lower), std::string(second_node) + " from here");
    EXPECT_EQ(ends(second_node, first_node, lower), std::string(second_node) + " to here");
    EXPECT_EQ(ends(third_node, first_node, lower), std::string(third_node) + " to here");
    EXPECT_EQ(ends(first_node, unknown_node, lower), std::string(first_node) + " from here");
    EXPECT_EQ(ends(unknown_node, first_node, lower), std::string(first_node) + " to here");
  }
  EXPECT_EQ(ends(first_node, first_node, true), std::string(first_node) + " from here");
  EXPECT_EQ(ends(first_node, first_node, false), std::string(first_node) + " to here");
  EXPECT_EQ(ends(second_node, third_node, true), std::string(third_node) + " from here");
  EXPECT_EQ(ends(third_node, second_node, false), std::string(third_node) + " to here");
  EXPECT_EQ(ends("", "", true), std::string(second_node) + " from here");
}

TEST(NetworkPaths, APlanOfOneTypeAsksNobodyForHis) {
  Plan plan;
  plan.fingerprint = first_node;
  plan.rows = {row_to(first_node, gpu(0), gpu(0), {{"variant", "whole"}})};
  EXPECT_FALSE(NetworkPaths(std::make_shared<const Chooser>(std::move(plan))).tells_nodes_apart());
  EXPECT_FALSE(NetworkPaths(plan_of_rows(with_gpu_row("ucx_staged", {{"variant", "whole"}}))).tells_nodes_apart());
}

// The road belongs to the two GPUs, whichever of them sends.
TEST(NetworkPaths, AreFoundByTheGpusOfBothEnds) {
  const NetworkPaths ways(plan_of_types());
  const NodeType first = node_type(first_node), second = node_type(second_node);
  const auto chunk = [&](Place source, Place destination, bool from_first) {
    const PlanEnds sender = from_first ? ways.ends(first, second, true) : ways.ends(second, first, true);
    const PlanEnds receiver = from_first ? ways.ends(second, first, false) : ways.ends(first, second, false);
    const auto found = ways.find(source, destination, 1 << 20, sender, true);
    EXPECT_EQ(ways.find(source, destination, 1 << 20, receiver, false), found);
    return found ? std::string(ways.all()[*found].path.parameter("chunk")) : "none";
  };
  EXPECT_EQ(chunk(gpu(0), gpu(0), true), "64K");
  EXPECT_EQ(chunk(gpu(1), gpu(0), true), "32K");
  EXPECT_EQ(chunk(gpu(0), gpu(1), true), "16K");
  EXPECT_EQ(chunk(gpu(1), gpu(1), true), "32K");
  EXPECT_EQ(chunk(gpu(7), gpu(7), true), "64K");
  EXPECT_EQ(chunk(gpu(1), gpu(0), false), "16K");
  EXPECT_EQ(chunk(gpu(0), gpu(1), false), "32K");
  EXPECT_EQ(chunk(gpu(0), host(0), true), "none");
}

TEST(NetworkPaths, OneRoadBetweenHostsIsWhatUcxTakesByItself) {
  EXPECT_TRUE(NetworkPaths(plan_of_rows({host_rows().front()})).all().empty());
}

TEST(NetworkPaths, ASharePerRailIsNeeded) {
  std::vector<PlanRow> rows = host_rows();
  rows[1].ways.front().way.parameters["share"] = "75+20";
  EXPECT_THROW(NetworkPaths{plan_of_rows(rows)}, Error);
}

}  // namespace
}  // namespace waywiser
