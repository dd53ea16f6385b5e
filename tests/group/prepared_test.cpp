#include "waywiser/group/prepared.hpp"

#include <gtest/gtest.h>

#include "tests/base/error_of.hpp"
#include "tests/collective/made_up_exchange.hpp"
#include "tests/comm/test_ranks.hpp"
#include "tests/group/callers_arrays.hpp"

namespace waywiser {
namespace {

// Different values in each start; the evaluator computes the expected results.
struct PreparedValues {
  PreparedValues(const std::vector<Schedule>& schedules, int start) {
    for (const Schedule& schedule : schedules) {
      arrays.push_back({0, 0, 0, {}, made_up_arrays(schedule)});
      for (std::size_t i = 0; i < schedule.arrays.size(); ++i)
        for (std::byte& byte : arrays.back().arrays[i])
          if (schedule.arrays[i].use == ArrayUse::given)
            byte = static_cast<std::byte>(static_cast<int>(byte) + 41 * start);
    }
    before = arrays;
    require_that(evaluate(schedules, arrays, {}).wrong.empty(), "a schedule that can be run");
  }
  void require_right(const Schedule& schedule, const std::vector<std::vector<std::byte>>& seen, int start) const {
    const auto& wanted = arrays[static_cast<std::size_t>(schedule.rank)].arrays;
    for (std::size_t i = 0; i < wanted.size(); ++i)
      if (schedule.arrays[i].use <= ArrayUse::taken)
        require_that(seen[i] == wanted[i], "array " + std::to_string(i) + " after start " + std::to_string(start));
  }

  std::vector<PlainArrays> before, arrays;
};

// Starts by the host or on a stream in turn; `replayed`: captured once, then replayed.
void run_prepared(Group& group, const std::vector<Schedule>& schedules, bool on_gpu, int starts, bool replayed) {
  const Schedule& mine = schedules[static_cast<std::size_t>(group.rank())];
  CallersArrays arrays(group, mine, on_gpu);
  Prepared prepared = Prepared::of_schedule(group, mine, arrays.elements());
  require_that(prepared.why_staged().empty(), prepared.why_staged());
  std::unique_ptr<StreamGraph> graph;
  if (replayed) graph = arrays.stream().capture([&] { prepared.start(arrays.stream()); });
  for (int start = 0; start < starts; ++start) {
    const PreparedValues values(schedules, start % 7);
    arrays.fill(values.before[static_cast<std::size_t>(group.rank())].arrays);
    if (graph) {
      graph->launch(arrays.stream());
      group.synchronize(arrays.stream());
    } else if (on_gpu && start % 2 == 0) {
      prepared.start(arrays.stream());
      group.synchronize(arrays.stream());
    } else {
      prepared.start();
      prepared.wait();
    }
    values.require_right(mine, arrays.read(), start);
  }
}

TEST(Prepared, SchedulesOfAllStepsTypesAndLayoutsAreRightOnHostsAndOnGpus) {
  for (const bool on_gpu : {false, true})
    for (const int size : {2, 3, 4}) {
      TestRanks ranks(size);
      ranks.virtual_gpus = on_gpu ? size : 0;
      EXPECT_EQ(ranks.in_processes([&](Group& group) {
        for (std::uint64_t seed = 0; seed < 6; ++seed)
          run_prepared(group, MadeUpExchange(size, seed, 50000).schedules(), on_gpu, 3, false);
        run_prepared(group, made_up_puts(size, 33), on_gpu, 3, false);
        for (const std::size_t count : {30011, 300007})  // the longer ones are copied when the receiver has come
          run_prepared(group, made_up_puts(size, count), on_gpu, 3, false);
        group.barrier();
      }),
                no_problems)
          << size << (on_gpu ? " GPUs" : " hosts");
    }
}

TEST(Prepared, IsStartedAThousandTimes) {
  for (const bool on_gpu : {false, true}) {
    TestRanks ranks(3);
    ranks.virtual_gpus = on_gpu ? 3 : 0;
    EXPECT_EQ(ranks.in_processes([&](Group& group) {
      run_prepared(group, MadeUpExchange(3, 4, 100).schedules(), on_gpu, 1000, false);
      group.barrier();
    }),
              no_problems);
  }
}

TEST(Prepared, WhatIsCapturedOnceIsReplayed) {
  TestRanks ranks(3);
  ranks.virtual_gpus = 3;
  EXPECT_EQ(ranks.in_processes([&](Group& group) {
    run_prepared(group, MadeUpExchange(3, 4, 30000).schedules(), true, 20, true);
    run_prepared(group, made_up_puts(3, 500), true, 20, true);
    group.barrier();
  }),
            no_problems);
}

// If all ranks have dropped an exchange, its memory is given back when the next one is prepared.
TEST(Prepared, MemoryOfWhatIsDroppedIsGivenBack) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([&](Group& group) {
    Bytes after_two = 0;
    for (int time = 0; time < 20; ++time) {
      run_prepared(group, made_up_puts(2, 100000), true, 1, false);
      if (time == 1) after_two = group.platform()->allocated_memory(gpu_of_rank(group).index);
    }
    require_that(group.platform()->allocated_memory(gpu_of_rank(group).index) == after_two, "as much as after two");
    group.barrier();
  }),
            no_problems);
}

TEST(Prepared, RanksThatDoNotFitAreToldWhenTheyPrepare) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([&](Group& group) {
    std::vector<Schedule> schedules = made_up_puts(2, 30);
    if (group.rank() == 1) schedules = made_up_puts(2, 40);
    const Schedule& mine = schedules[static_cast<std::size_t>(group.rank())];
    CallersArrays arrays(group, mine, true);
    expect_error(error_of([&] { static_cast<void>(Prepared::of_schedule(group, mine, arrays.elements())); }),
                 "rank 0 sends 2 messages of 120 bytes to rank 1, which takes 2 messages of 160 bytes");
    Schedule wrong = mine;
    wrong.steps.back().round = 0;
    expect_error(error_of([&] { static_cast<void>(Prepared::of_schedule(group, wrong, arrays.elements())); }),
                 "rank 0: a schedule: rounds do not ascend");
    run_prepared(group, made_up_puts(2, 30), true, 2, false);  // the group goes on
    group.barrier();
  }),
            no_problems);
}

}  // namespace
}  // namespace waywiser
