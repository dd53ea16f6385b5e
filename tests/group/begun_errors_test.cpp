// What a call of GPU arrays that was begun says when it cannot end.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

#include "tests/comm/test_ranks.hpp"
#include "tests/group/gpu_integers.hpp"

namespace waywiser {
namespace {

TEST(BegunOnGpus, ArraysOfTheHostAtOneRankAreAnErrorAtAll) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  ranks.timeout = 1;
  const auto problems = ranks.in_processes([](Group& group) {
    GpuIntegers in(group, 100, 0), out(group, 100, 0);
    Integers here(100), sum(100);
    group.all_reduce(in.elements(), out.elements());
    if (group.rank() == 0) group.all_reduce(in.elements(), out.elements(), ReduceOp::sum, Mode::begin).wait();
    if (group.rank() == 1) group.all_reduce(std::span(here), std::span(sum), ReduceOp::sum, Mode::begin).wait();
  });
  ASSERT_EQ(problems.size(), 2u);
  for (const std::string& problem : problems) EXPECT_NE(problem.find("all_reduce #"), std::string::npos) << problem;
}

// Faults: gpus T
TEST(BegunOnGpus, ALateRankAndTheOperationAreNamed) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  const auto problems = ranks.in_processes([](Group& group) {
    GpuIntegers in(group, 100, 0), out(group, 100, 0);
    group.all_reduce(in.elements(), out.elements());
    if (group.rank() == 1) return group.recv(std::span<int>(), 0).wait();  // never sent
    group.set_timeout(1);
    Future sum = group.all_reduce(in.elements(), out.elements(), ReduceOp::sum, Mode::begin);
    sum.wait();
  });
  ASSERT_EQ(problems.size(), 2u);
  for (const char* part : {"rank 0: all_reduce #", "of 100 int32, sum", "rank 1 did not send within 1.00 s"})
    EXPECT_NE(problems[0].find(part), std::string::npos) << problems[0];
}

// Faults: gpus D
TEST(BegunOnGpus, ARankThatDiesIsNamedWhileAFutureIsUnderWay) {
  for (const bool polls : {false, true}) {
    TestRanks ranks(2);
    ranks.virtual_gpus = 2;
    const auto problems = ranks.in_processes([polls](Group& group) {
      GpuIntegers in(group, 100, 0), out(group, 100, 0);
      group.all_reduce(in.elements(), out.elements());
      if (group.rank() == 1) ::_exit(3);
      Future sum = group.all_reduce(in.elements(), out.elements(), ReduceOp::sum, Mode::begin);
      while (polls && !sum.done()) continue;
      sum.wait();
    });
    ASSERT_EQ(problems.size(), 2u);
    EXPECT_NE(problems[0].find("rank 1"), std::string::npos) << problems[0];
  }
}

TEST(BegunOnGpus, ADroppedFutureEndsTheOperationAndTheGroup) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  const auto problems = ranks.in_processes([](Group& group) {
    GpuIntegers in(group, 100, 0), out(group, 100, 7);
    group.prepare(gpu_of_rank(group), 1);
    if (group.rank() == 1) return group.recv(std::span<int>(), 0).wait();  // never sent
    static_cast<void>(group.all_reduce(in.elements(), out.elements(), ReduceOp::sum, Mode::begin));
    group.barrier();
  });
  ASSERT_EQ(problems.size(), 2u);
  for (const std::string& problem : problems)
    for (const char* part : {"rank 0: all_reduce #", "was given up"})
      EXPECT_NE(problem.find(part), std::string::npos) << problem;
}

TEST(BegunOnGpus, ARankThatMakesNoCallOnGpusIsNamed) {
  TestRanks ranks(3);
  ranks.virtual_gpus = 3;
  const auto problems = ranks.in_processes([](Group& group) {
    if (group.rank() == 2) return group.recv(std::span<int>(), 0).wait();  // never sent
    const auto stream = group.platform()->open_stream(gpu_of_rank(group));
    GpuIntegers numbers(group, 10, 0);
    if (group.rank() == 0) group.set_timeout(1);
    if (group.rank() == 0) group.send(numbers.elements(), 1, 0, Mode::on(*stream));
    if (group.rank() == 1) group.recv(numbers.elements(), 0, 0, Mode::on(*stream));
  });
  ASSERT_EQ(problems.size(), 3u);
  for (const char* part : {"rank 2", "send #1 of 10 int32 to rank 1", "sets them up with all ranks"})
    EXPECT_NE(problems[0].find(part), std::string::npos) << problems[0];
}

}  // namespace
}  // namespace waywiser
