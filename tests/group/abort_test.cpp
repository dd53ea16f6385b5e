// A rank that gives up, and who asks whether the group has failed.
#include <gtest/gtest.h>

#include <thread>

#include "tests/base/error_of.hpp"
#include "tests/comm/test_ranks.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/device/platform.hpp"

namespace waywiser {
namespace {

const std::string out_of_fuel = "rank 0: out of fuel";

void require_failed(const std::string& told, const char* what) {
  require_that(told.find(out_of_fuel) != std::string::npos, std::string(what) + ": " + told);
}

// Rank 0's own call too, which another thread is in.
TEST(Abort, EndsWhatAllRanksWaitForAndWaitsForNobody) {
  EXPECT_EQ(TestRanks(3).in_processes([](Group& group) {
    std::vector<int> number(1);
    if (group.rank() == 0) {
      group.barrier();
      require_that(group.failure().empty(), "nothing has failed");
      std::thread other([&] { group.abort("out of fuel"); });
      const std::string told = error_of([&] { group.recv(std::span(number), 1); });
      other.join();
      require_failed(told, "the call of another thread");
    } else {
      require_failed(error_of([&] {
                       group.barrier();
                       group.recv(std::span(number), 0);
                     }),
                     "a call under way");
    }
    require_that(group.failure() == out_of_fuel, "failure: " + group.failure());
    require_failed(error_of([&] { group.barrier(); }), "a later call");
  }),
            no_problems);
}

TEST(Abort, OfAPartEndsTheWholeJob) {
  EXPECT_EQ(TestRanks(3).in_processes([](Group& group) {
    require_failed(error_of([&] {
                     std::optional<Group> part = group.split(group.rank() == 2 ? 1 : 0);
                     if (group.rank() == 0) part->abort("out of fuel");
                     group.barrier();
                   }),
                   "the whole group");
    require_that(group.failure() == out_of_fuel, "a part without rank 0: " + group.failure());
  }),
            no_problems);
}

TEST(Abort, StopsWhatWaitsOnAGpu) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    const Memory array = group.platform()->allocate(gpu(group.rank()), 32, Allocation::gpu);
    const auto stream = group.platform()->open_stream(gpu(group.rank()));
    const Elements numbers(array.region(), DataType::int32);
    const auto reduce = [&] {
      group.all_reduce(numbers, numbers, ReduceOp::max, Mode::on(*stream));
      group.synchronize(*stream);
    };
    if (group.rank() == 0) {
      reduce();
      return group.abort("out of fuel");
    }
    require_failed(error_of([&] {
                     reduce();
                     reduce();
                   }),
                   "a kernel");
    require_failed(group.failure(), "failure");
  }),
            no_problems);
}

}  // namespace
}  // namespace waywiser
