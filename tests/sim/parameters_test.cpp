// Each parameter of each path is read by the model of its mechanism.
#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "tests/sim/package_paths.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/sim/models.hpp"

namespace waywiser::sim {
namespace {

class Machine {
 public:
  explicit Machine(const std::string& name) : topology(package_machine(name)), node_(topology, costs_of(topology)) {
    ClusterSpec two;
    two.network.nodes = 2;
    two.rdma_only = false;
    world_ = std::make_unique<World>(node_, two);
  }

  // False: such a path cannot be here, which is no question of parameters.
  bool runs(const Asked& asked) const {
    if (asked.path.mechanism == "tls") return false;  // has no model
    const TimedTransfer transfer = made(asked);
    if (why_unavailable(transfer)) return false;
    program(transfer);
    return true;
  }

  const Topology topology;

 private:
  TimedTransfer made(const Asked& asked) const {
    const auto name = [](Place place) { return text(on_node(this_node, place)); };
    return {*world_, asked.path, {0, name(asked.path.source)}, {asked.to_node, name(asked.path.destination)}, 1 << 20};
  }

  NodeModel node_;
  std::unique_ptr<World> world_;
};

const std::vector<std::string> machines{"hse-a", "hse-e", "dgx-1v", "dgx-a100", "remote-t4"};

TEST(Parameters, EachOneThatEnumerationGivesIsRead) {
  std::set<std::string> mechanisms;
  for (const std::string& name : machines) {
    const Machine machine(name);
    for (const Asked& asked : all_paths(machine.topology)) {
      try {
        if (machine.runs(asked)) mechanisms.insert(asked.path.mechanism);
      } catch (const Error& error) {
        ADD_FAILURE() << name << " " << pair_text(asked.path) << ": " << error.what();
      }
    }
  }
  std::set<std::string> modelled;
  for (const Model& model : models()) modelled.emplace(model.mechanism);
  EXPECT_EQ(mechanisms, modelled);
}

TEST(Parameters, OneThatNoModelReadsIsAnError) {
  std::size_t tried = 0;
  for (const std::string& name : machines) {
    const Machine machine(name);
    for (Asked& asked : all_paths(machine.topology)) {
      if (!machine.runs(asked)) continue;
      for (const char* more : {"colour", "nics", "memory", "depth", "gdr"}) {
        Asked wider = asked;
        if (std::string_view(more) == "nics" && asked.to_node == 1 && !asked.path.has("device")) continue;
        if (!wider.path.parameters.emplace(more, "3").second) continue;
        EXPECT_THROW(machine.runs(wider), Error) << label(wider.path);
        ++tried;
      }
    }
  }
  EXPECT_GT(tried, 1000u);
}

TEST(Parameters, AValueThatNoModelKnowsIsAnErrorOrAReason) {
  for (const std::string& name : machines) {
    const Machine machine(name);
    for (const Asked& asked : all_paths(machine.topology)) {
      if (!machine.runs(asked)) continue;
      for (const auto& [parameter, value] : asked.path.parameters) {
        Asked other = asked;
        other.path.parameters[parameter] = "nonsense";
        try {
          EXPECT_FALSE(machine.runs(other)) << label(other.path);
        } catch (const Error&) {
        }
      }
    }
  }
}

TEST(Parameters, WhatCannotGoTogetherIsNotSimulated) {
  const Machine machine("hse-a");
  const auto runs = [&](const std::string& mechanism, Place from, Place to, int processes, int node,
                        std::map<std::string, std::string> parameters) {
    return machine.runs({{mechanism, from, to, processes, std::move(parameters)}, node});
  };
  EXPECT_FALSE(runs("ucx", gpu(0), gpu(0), 2, 1, {{"transports", "network-tcp"}, {"gdr", "on"}}));
  EXPECT_TRUE(runs("ucx", gpu(0), gpu(0), 2, 1, {{"transports", "network-tcp"}, {"gdr", "off"}}));
  EXPECT_FALSE(runs("ucx", gpu(0), gpu(1), 2, 0, {{"transports", "posix"}}));
  EXPECT_FALSE(runs("ucx", host(0), host(1), 2, 0, {{"transports", "cuda_copy"}}));
  const std::string two = "mlx5_0:1+mlx5_1:1";
  EXPECT_FALSE(runs("ucx_staged", gpu(0), gpu(0), 2, 1, {{"transports", "rc"}, {"variant", "whole"}, {"device", two}}));
  EXPECT_THROW(runs("copy_engine", gpu(0), gpu(1), 1, 0, {{"memory", "pageable"}}), Error);
}

}  // namespace
}  // namespace waywiser::sim
