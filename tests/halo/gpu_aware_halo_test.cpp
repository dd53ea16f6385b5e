#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/base/error_of.hpp"
#include "tests/comm/test_ranks.hpp"
#include "tests/halo/rank_fields.hpp"
#include "tests/policy/made_up_rows.hpp"
#include "waywiser/halo/halo_exchange.hpp"
#include "waywiser/halo/tuning.hpp"
#include "waywiser/policy/chooser.hpp"

// The variant that gives GPU memory to messages, where it differs from others.
namespace waywiser {
namespace {

// From GPU 0 of a machine to GPU 0 of another one, by UCX over the loopback device.
std::shared_ptr<const Chooser> plan_of_road(const std::string& mechanism, std::map<std::string, std::string> terms) {
  terms.insert({{"transports", "network-tcp"}, {"device", "lo"}});
  Plan plan;
  plan.rows = {made_up::message_row({{mechanism, gpu(0), seen_from_other(gpu(0)), 2, std::move(terms)}}, 0, no_end)};
  return std::make_shared<const Chooser>(std::move(plan));
}

// Faces of 4,096 cells.
MadeUpDomain wide_domain(int ranks) {
  const int parts[] = {ranks, 1};
  return MadeUpDomain::of(even_grid({4 * ranks, 4096}, {1, 2}, {true, true}, parts), 5);
}

void exchange_with_road(Group& group, const std::string& road) {
  const MadeUpDomain domain = wide_domain(group.size());
  RankFields fields(group, domain, true);
  HaloExchange exchange(group, fields.partition(), fields.arrays());
  const std::string why = error_of([&] { exchange.use(HaloVariant::direct); });
  require_that(why.find("several machines") != std::string::npos, why);
  exchange.use(HaloVariant::gpu_aware);
  for (int start = 0; start < 3; ++start) {
    fields.fill(start);
    start == 1 ? exchange.exchange(fields.stream()) : exchange.exchange();
    fields.require_exchanged(start);
  }
  const std::string words = exchange.explain();
  require_that(words.find("\nwith rank " + std::to_string(1 - group.rank()) + ": ") != std::string::npos, words);
  require_that(words.find(road) != std::string::npos, road + " in: " + words);
  group.barrier();
}

TEST(GpuAwareHalo, TheRoadOfThePlanCarriesGpuMemoryBetweenMachines) {
  const std::pair<std::string, std::map<std::string, std::string>> roads[] = {
      {"variant=whole", {{"variant", "whole"}}},
      {"ucx_staged(chunk=64K,depth=2", {{"variant", "pipelined"}, {"chunk", "64K"}, {"depth", "2"}}}};
  for (const auto& [words, terms] : roads) {
    TestRanks ranks(2);
    ranks.machines_apart = true;
    ranks.virtual_gpus = 1;
    ranks.chooser_of = [&](int) { return plan_of_road("ucx_staged", terms); };
    EXPECT_EQ(ranks.in_processes([&](Group& group) { exchange_with_road(group, words); }), no_problems);
  }
}

TEST(GpuAwareHaloOnCudaGpus, UcxReadsThemWhereThePlanSaysSo) {
  if (cuda_devices_here() == 0) GTEST_SKIP() << "needs a CUDA GPU";
  TestRanks ranks(2);
  ranks.machines_apart = true;
  ranks.cuda_gpus = true;
  ranks.chooser_of = [](int) { return plan_of_road("ucx", {{"gdrcopy", "off"}}); };
  EXPECT_EQ(ranks.in_processes([](Group& group) { exchange_with_road(group, "machines, ucx("); }), no_problems);
}

// Machines of two GPUs each: within one a kernel or a copy engine moves the bytes, between two the network.
TEST(GpuAwareHalo, EachNeighborHasItsOwnRoad) {
  TestRanks ranks(4);
  ranks.machines_apart = true;
  ranks.ranks_of_machine = 2;
  ranks.virtual_gpus = 4;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    const MadeUpDomain domain = wide_domain(group.size());
    RankFields fields(group, domain, true);
    HaloExchange exchange(group, fields.partition(), fields.arrays());
    const HaloTuning& tuning = exchange.tune(1e-3);
    const auto measured = std::ranges::find(tuning.times, HaloVariant::gpu_aware, &HaloTime::variant);
    require_that(measured != tuning.times.end() && measured->why_unavailable.empty(), "a candidate of tune()");
    exchange.use(HaloVariant::gpu_aware);
    fields.fill(1);
    exchange.exchange();
    fields.require_exchanged(1);
    const std::string words = exchange.explain();
    const int near = group.rank() ^ 1, far = 3 - group.rank();
    require_that(
        words.find("\nwith rank " + std::to_string(near) + ": by a kernel or a copy engine") != std::string::npos,
        words);
    require_that(words.find("\nwith rank " + std::to_string(far) + ": by the hosts: the ranks are on two machines") !=
                     std::string::npos,
                 words);
    group.barrier();
  }),
            no_problems);
}

// Messages that are under way have packed memory of their own.
TEST(GpuAwareHalo, AnExchangeThatIsUnderWayMayBeDropped) {
  TestRanks ranks(3);
  ranks.virtual_gpus = 3;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    for (int turn = 0; turn < 3; ++turn) {
      const MadeUpDomain domain = wide_domain(group.size());
      RankFields fields(group, domain, true);
      {
        HaloExchange dropped(group, fields.partition(), fields.arrays());
        dropped.use(HaloVariant::gpu_aware);
        dropped.start();
      }
      HaloExchange exchange(group, fields.partition(), fields.arrays());
      exchange.use(HaloVariant::gpu_aware);
      fields.fill(turn);
      exchange.exchange();
      fields.require_exchanged(turn);
    }
    group.barrier();
  }),
            no_problems);
}

}  // namespace
}  // namespace waywiser
