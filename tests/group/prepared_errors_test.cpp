#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "tests/base/error_of.hpp"
#include "tests/collective/made_up_exchange.hpp"
#include "tests/comm/test_ranks.hpp"
#include "tests/group/callers_arrays.hpp"
#include "waywiser/group/prepared.hpp"

namespace waywiser {
namespace {

TEST(Prepared, ReductionsThatThereAreNotAreRefused) {
  TestRanks ranks(1);
  ranks.virtual_gpus = 1;
  EXPECT_EQ(ranks.in_processes([&](Group& group) {
    for (const bool on_gpu : {false, true}) {
      const auto refusal = [&](DataType type, ReduceOp op) {
        Schedule sum{"sum", 0, 1, 0, 0, 0, {}, {}, {}};
        sum.arrays = {{type, 4, ArrayUse::given}, {type, 4, ArrayUse::taken}};
        sum.steps = {{StepKind::reduce, 0, -1, {Area::array, 0, 4, 1, 0}, {Area::array, 0, 4, 0, 0}}};
        CallersArrays arrays(group, sum, on_gpu);
        return error_of([&] { static_cast<void>(Prepared::of_schedule(group, sum, arrays.elements(), op)); });
      };
      expect_error(refusal(DataType::complex64, ReduceOp::min), "there is no min of complex64, which has no order");
      expect_error(refusal(DataType::complex64, ReduceOp::prod), "no error");
      expect_error(refusal(DataType::complex128, ReduceOp::prod),
                   on_gpu ? "prod of complex128 on a GPU is for collectives" : "no error");
    }
  }),
            no_problems);
}

TEST(Prepared, ASecondStartBeforeWaitIsRefused) {
  EXPECT_EQ(TestRanks(2).in_processes([&](Group& group) {
    const Schedule mine = made_up_puts(2, 30000)[static_cast<std::size_t>(group.rank())];
    CallersArrays arrays(group, mine, false);
    Prepared prepared = Prepared::of_schedule(group, mine, arrays.elements());
    std::vector<int> go(1);
    if (group.rank() == 1) group.recv(std::span(go), 0);
    prepared.start();
    if (group.rank() == 0) {
      expect_error(error_of([&] { prepared.start(); }), "started again before wait()");
      group.send(std::span(go), 1);
    }
    prepared.wait();
    group.barrier();
  }),
            no_problems);
}

TEST(Prepared, ARankThatDoesNotStartIsNamed) {
  for (const bool on_gpu : {false, true}) {
    TestRanks ranks(2);
    ranks.virtual_gpus = on_gpu ? 2 : 0;
    const std::vector<std::string> problems = ranks.in_processes([&](Group& group) {
      const Schedule mine = made_up_puts(2, 100)[static_cast<std::size_t>(group.rank())];
      CallersArrays arrays(group, mine, on_gpu);
      Prepared prepared = Prepared::of_schedule(group, mine, arrays.elements());
      prepared.start();
      prepared.wait();
      if (group.rank() == 0) {
        group.set_timeout(1);  // not earlier: a GPU takes its time to be opened
        prepared.start();
        prepared.wait();
      } else {
        group.set_timeout(40);  // rank 0 is the first to have waited too long
        std::vector<float> never(1);
        group.recv(std::span(never), 0);
      }
    });
    ASSERT_EQ(problems.size(), 2U);
    const std::string wanted = on_gpu ? "rank 1 did not come within 1.00 s in start #2 of a prepared puts" : "rank 1";
    EXPECT_NE(problems[0].find(wanted), std::string::npos) << problems[0];
  }
}

TEST(Prepared, ARankThatDiesEndsTheStartsOfAllOthers) {
  for (const bool on_gpu : {false, true}) {
    TestRanks ranks(2);
    ranks.virtual_gpus = on_gpu ? 2 : 0;
    const std::vector<std::string> problems = ranks.in_processes([&](Group& group) {
      const Schedule mine = made_up_puts(2, 100)[static_cast<std::size_t>(group.rank())];
      CallersArrays arrays(group, mine, on_gpu);
      Prepared prepared = Prepared::of_schedule(group, mine, arrays.elements());
      if (group.rank() == 1) std::_Exit(3);
      prepared.start();
      prepared.wait();
    });
    ASSERT_EQ(problems.size(), 2U);
    EXPECT_NE(problems[0].find("rank 1"), std::string::npos) << problems[0];
    EXPECT_EQ(problems[0].find("did not come within"), std::string::npos) << problems[0];
  }
}

}  // namespace
}  // namespace waywiser
