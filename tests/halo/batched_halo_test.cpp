#include <gtest/gtest.h>

#include "tests/base/error_of.hpp"
#include "tests/comm/test_ranks.hpp"
#include "tests/halo/rank_fields.hpp"
#include "waywiser/halo/halo_exchange.hpp"
#include "waywiser/halo/side_kind.hpp"
#include "waywiser/halo/tuning.hpp"

// The variant that batches of copies make, where it differs from others.
namespace waywiser {
namespace {

MadeUpDomain grid_domain(std::vector<std::int64_t> shape, const std::vector<int>& parts) {
  return MadeUpDomain::of(even_grid(std::move(shape), {1, 2}, {true, true}, parts), 5);
}

// The copies that start() has enqueued end before the fields may go.
TEST(BatchedHalo, ABatchThatIsUnderWayMayBeDropped) {
  TestRanks ranks(3);
  ranks.virtual_gpus = 3;
  EXPECT_EQ(ranks.in_processes([&](Group& group) {
    const MadeUpDomain domain = grid_domain({6, 16}, {1, 3});
    for (int turn = 0; turn < 3; ++turn) {
      RankFields fields(group, domain, true);
      {
        HaloExchange dropped(group, fields.partition(), fields.arrays());
        dropped.use(HaloVariant::batched);
        dropped.start();
      }
      HaloExchange exchange(group, fields.partition(), fields.arrays());
      exchange.use(HaloVariant::batched);
      fields.fill(turn);
      exchange.exchange();
      fields.require_exchanged(turn);
    }
    group.barrier();
  }),
            no_problems);
}

// More blocks than a batch may have: single cells of a list.
TEST(BatchedHalo, TooManyBlocksAreNoBatch) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([&](Group& group) {
    const std::size_t cells = 10000;
    std::vector<std::int64_t> give, take;
    for (std::int64_t i = 0; i < 2100; ++i) give.push_back(4 * i), take.push_back(4 * i + 2);
    const HaloLists lists[] = {{1 - group.rank(), give, take}};
    const HaloPartition partition = listed_partition(group.rank(), 2, cells, lists);
    const Memory memory = group.platform()->allocate(gpu_of_rank(group), cells * 8, Allocation::gpu);
    const HaloArray arrays[] = {{Elements(memory.region().slice(0, cells * 8), DataType::float64)}};
    HaloExchange exchange(group, partition, arrays);
    const std::string why = error_of([&] { exchange.use(HaloVariant::batched); });
    require_that(why == "rank 0: the boundary of rank 0 has 4200 blocks to copy, more than 4096", why);
    exchange.exchange();
    group.barrier();
  }),
            no_problems);
}

// Copy engines reach no memory of another machine, as the job sees machines.
TEST(BatchedHalo, RanksOfOtherMachinesAreNotReached) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  ranks.machines_apart = true;
  EXPECT_EQ(ranks.in_processes([&](Group& group) {
    const MadeUpDomain domain = grid_domain({6, 16}, {1, 2});
    RankFields fields(group, domain, true);
    HaloExchange exchange(group, fields.partition(), fields.arrays());
    const std::string why = error_of([&] { exchange.use(HaloVariant::batched); });
    require_that(why == "rank 0: rank 1 is on another machine", why);
    const HaloTuning& tuning = exchange.tune(1e-3);
    for (const HaloKindTimes& each : tuning.kinds)
      require_that(!kind_of(each.key).same_machine, "all sides lead to other machines");
    fields.fill(1);
    exchange.exchange();
    fields.require_exchanged(1);
    group.barrier();
  }),
            no_problems);
}

// Nothing on the GPU waits for another rank then, also where that would be faster than the hosts: batches of copies.
TEST(BatchedHalo, RanksThatShareAGpuHaveNoWaitingKernelsUnlessThatWasAskedFor) {
  TestRanks ranks(4);
  ranks.virtual_gpus = 2;
  ranks.kernels_on_shared_gpu = false;
  EXPECT_EQ(ranks.in_processes([&](Group& group) {
    const MadeUpDomain domain = grid_domain({8, 40}, {2, 2});
    RankFields fields(group, domain, true);
    HaloExchange exchange(group, fields.partition(), fields.arrays());
    const HaloTuning& tuning = exchange.tune(1e-3);
    for (const HaloTime& each : tuning.times) {
      const bool waits = is_direct(each.variant);
      require_that(each.why_unavailable.empty() != waits, std::string(name(each.variant)) + each.why_unavailable);
      require_that(!waits || each.why_unavailable.find(" share GPU ") != std::string::npos, each.why_unavailable);
    }
    exchange.use(HaloVariant::batched);
    for (int start = 0; start < 3; ++start) {
      fields.fill(start);
      exchange.exchange(fields.stream());
      fields.require_exchanged(start);
    }
    group.barrier();
  }),
            no_problems);
}

}  // namespace
}  // namespace waywiser
