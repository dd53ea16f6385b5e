#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/base/error_of.hpp"
#include "tests/comm/test_ranks.hpp"
#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

// Rank 1 sends the second message first, and the other one only when it is asked for.
TEST(WaitAny, ReturnsTheOneThatIsDone) {
  EXPECT_EQ(TestRanks(2).in_processes([](Group& group) {
    std::vector<std::vector<double>> came(3, std::vector<double>(5000));
    const std::vector<double> mine(5000, 1);
    std::vector<std::uint8_t> asked(1);
    if (group.rank() == 1) {
      group.send(std::span(mine), 0, 1);
      group.recv(std::span(asked), 0);
      for (const int tag : {0, 2}) group.send(std::span(mine), 0, tag);
      return;
    }
    std::vector<Future> futures;
    for (int tag = 0; tag < 3; ++tag)
      futures.push_back(group.recv(std::span(came[static_cast<std::size_t>(tag)]), 1, tag, Mode::begin));
    require_that(wait_any(futures) == 1 && came[1][4999] == 1, "the one that has come");
    require_that(wait_any(futures) == 1, "it stays done");
    group.send(std::span(asked), 1);
    Future* const left[] = {nullptr, &futures[2]};
    require_that(wait_any(left) == 1 && came[2][0] == 1, "those that are left out are not waited for");
    wait_all(futures);
    require_that(came[0][0] == 1, "all");
  }),
            no_problems);
}

TEST(WaitAny, SaysWhatItWaitedFor) {
  EXPECT_EQ(TestRanks(2).in_processes([](Group& group) {
    std::vector<int> one(1), two(1);
    require_that(error_of([] { wait_any(std::span<Future>()); }) == "wait_any: there is no future", "none");
    if (group.rank() == 0) {
      group.set_timeout(0.2);
      std::vector<Future> futures;
      futures.push_back(group.recv(std::span(one), 1, 3, Mode::begin));
      futures.push_back(group.recv(std::span(two), 1, 4, Mode::begin));
      const std::string told = error_of([&] { wait_any(futures); });
      require_that(told.find("none of 2 operations is over; the first: 0 of 4 bytes arrived") != std::string::npos,
                   told);
    } else {
      const std::string told = error_of([&] { group.recv(std::span(one), 0); });
      require_that(told.find("rank 0: waited 200 ms in recv #1") != std::string::npos, told);
    }
  }),
            no_problems);
}

}  // namespace
}  // namespace waywiser
