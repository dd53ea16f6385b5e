// What happens on the way of each path.
#include "waywiser/measure/path_steps.hpp"

#include <gtest/gtest.h>

#include <set>

#include "tests/sim/package_paths.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/measure/path_limit.hpp"
#include "waywiser/transport/transport.hpp"

namespace waywiser {
namespace {

constexpr Bytes asked_bytes = 40 << 20;

const Topology& hse_a() {
  static const Topology topology = sim::package_machine("hse-a");
  return topology;
}

std::vector<std::string> who_of(const Path& path) {
  std::vector<std::string> found;
  for (const Json& step : steps_json(hse_a(), path, asked_bytes)) found.push_back(step["who"]);
  return found;
}

Json last_move(const Path& path) {
  Json found;
  for (const Json& step : steps_json(hse_a(), path, asked_bytes))
    if (!step["from"].is_null() || !step["to"].is_null()) found = step;
  return found;
}

// Each move begins where the one before has ended, from the source to the destination; a part of a split has its own.
TEST(PathSteps, OfEachPathLeadFromTheSourceToTheDestination) {
  std::set<std::string> seen;
  for (const char* name : {"hse-a", "dgx-1v", "dgx-a100", "recorded-4xh200"}) {
    const Topology topology = sim::package_machine(name);
    for (const sim::Asked& asked : sim::all_paths(topology)) {
      const Path& path = asked.path;
      std::string at = text(path.source);
      std::size_t moves = 0;
      for (const Json& step : steps_json(topology, path, asked_bytes)) {
        EXPECT_FALSE(step["who"].get<std::string>().empty());
        EXPECT_GE(step["times"].get<int>(), 1);
        if (step["from"].is_null() && step["to"].is_null()) continue;
        if (path.mechanism == "split" && step["from"] == text(path.source)) at = text(path.source);
        if (!step["from"].is_null()) {
          EXPECT_EQ(step["from"].get<std::string>(), at) << pair_text(path) << " " << label(path);
          at = "the network";
        }
        if (!step["to"].is_null()) at = step["to"];
        ++moves;
      }
      EXPECT_EQ(at, text(path.destination)) << pair_text(path) << " " << label(path);
      EXPECT_GE(moves, 1u);
      seen.insert(path.mechanism);
    }
  }
  std::set<std::string> all;
  for (const Mechanism& row : mechanisms()) all.emplace(row.name);
  EXPECT_EQ(seen, all);
}

TEST(PathSteps, OfPageableMemoryGoThroughABufferOfTheDriver) {
  Path path{"host_staged", gpu(0), gpu(1), 1, {{"variant", "pageable"}}};
  EXPECT_EQ(who_of(path), (std::vector<std::string>{"the CPU", "a copy engine of gpu0", "the CPU", "the CPU",
                                                    "a copy engine of gpu1"}));
  path.parameters["variant"] = "whole";
  EXPECT_EQ(who_of(path), (std::vector<std::string>{"the CPU", "a copy engine of gpu0", "a copy engine of gpu1"}));
}

TEST(PathSteps, OfAPipelineHappenOnceForEachPiece) {
  const Path path{"host_staged", gpu(0), gpu(1), 1, {{"variant", "pipelined"}, {"chunk", "1M"}, {"depth", "3"}}};
  EXPECT_EQ(last_move(path)["times"], 40);
  EXPECT_EQ(last_move(path)["from"], "a pinned buffer in host0");
}

// What the network card reads itself takes 5 steps; through memory that is not pinned it takes 11.
TEST(PathSteps, ToAnotherMachineAreFewerWhereTheCardReadsTheGpu) {
  const Place there = on_node(some_other_node, gpu(0));
  const Path direct{"ucx", gpu(0), there, 2, {{"transports", "rc"}, {"device", "mlx5_0:1"}, {"gdr", "on"}}};
  EXPECT_EQ(who_of(direct),
            (std::vector<std::string>{"the CPU", "mlx5_0:1", "the network", "the card there", "the CPU there"}));
  const Path staged{
      "ucx_staged", gpu(0), there, 2, {{"transports", "rc"}, {"device", "mlx5_0:1"}, {"variant", "pageable"}}};
  EXPECT_EQ(who_of(staged).size(), 11u);
  Path copied = direct;
  copied.parameters["gdr"] = "off";
  EXPECT_EQ(who_of(copied).size(), 7u);
}

TEST(PathSteps, LimitIsThatOfTheSlowestHopOfAnyStep) {
  const Path direct{"copy_engine", gpu(0), gpu(1), 1, {}};
  const Path staged{"host_staged", gpu(0), gpu(1), 1, {{"variant", "whole"}}};
  const Topology nvlinks = sim::package_machine("dgx-1v");
  EXPECT_GT(path_limit(nvlinks, direct).rate, path_limit(nvlinks, staged).rate);
  EXPECT_GT(path_limit(nvlinks, staged).rate, 0);
  const Path through{"ucx", gpu(0), gpu(1), 2, {{"transports", "cuda_copy"}}};
  EXPECT_EQ(path_limit(nvlinks, through).rate, path_limit(nvlinks, staged).rate);
}

TEST(PathSteps, AnUnknownMechanismIsRefused) {
  EXPECT_THROW(steps_json(hse_a(), {"pigeon", gpu(0), gpu(1), 1, {}}, 1), Error);
}

}  // namespace
}  // namespace waywiser
