// The errors of the other ranks if a rank is killed.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "tests/comm/faults.hpp"
#include "tests/comm/test_ranks.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/base/units.hpp"

namespace waywiser {
namespace {

void die() { ::kill(::getpid(), SIGKILL); }

// The errors of the ranks that were not killed.
Problems survivors(const Problems& problems) {
  Problems others;
  for (const std::string& problem : problems)
    if (!holds(problem, "signal 9")) others.push_back(problem);
  return others;
}

// Faults: host D
TEST(Fault, ARankThatIsKilledIsAnErrorAtAllOthersThatWait) {
  for (const int victim : {0, 2}) {
    const auto problems = TestRanks(4).in_processes([&](Group& group) {
      if (group.rank() == victim) die();
      receive_something(group, (group.rank() + 1) % 4);
    });
    expect_each(survivors(problems), 3, "rank " + std::to_string(victim) + " (process ");
  }
}

// Faults: host D
TEST(Fault, KilledBetweenCollectives) {
  const auto problems = TestRanks(3).in_processes([](Group& group) {
    std::vector<double> data(20000);
    for (int turn = 0;; ++turn) {
      if (group.rank() == 1 && turn == 20) die();
      group.all_reduce(std::span(data), std::span(data));
    }
  });
  expect_each(survivors(problems), 2, "rank 1 (process ");
}

// Faults: forming D
TEST(Fault, KilledWhileTheOthersClose) {
  const auto problems = TestRanks(3).in_processes([](Group& group) {
    group.barrier();
    std::byte passed{};  // a rank may leave the barrier before the others do
    if (group.rank() != 2) {
      group.send(std::span<const std::byte>(&passed, 1), 2);
      return;
    }
    for (int rank = 0; rank < 2; ++rank) group.recv(std::span(&passed, 1), rank);
    die();
  });
  EXPECT_EQ(survivors(problems), Problems());  // they had finished and need nothing more
}

// Faults: host D
TEST(Fault, KilledInTheMiddleOfALongMessage) {
  const auto problems = TestRanks(3).in_processes([](Group& group) {
    std::vector<std::byte> data(64 << 20);
    if (group.rank() == 0) {
      Future sent = group.send(std::span(data), 1, 0, Mode::begin);
      std::byte go{};
      group.recv(std::span(&go, 1), 1);
      die();
    }
    if (group.rank() == 2) receive_something(group, 1);
    const std::byte go{};
    group.send(std::span(&go, 1), 0);
    for (int message = 0; message < 2; ++message) group.recv(std::span(data), 0);  // the first may have come whole
  });
  expect_each(survivors(problems), 2, "rank 0 (process ");
}

TEST(Fault, WhoComputesWhileARankDiesHearsOfItAtTheNextCall) {
  const auto problems = TestRanks(2).in_processes([](Group& group) {
    if (group.rank() == 1) die();
    const float value = 1;
    for (const Deadline deadline = Deadline::in(10); !deadline.passed();) group.send(std::span(&value, 1), 1);
  });
  expect_each(survivors(problems), 1, "rank 1 (process ");
}

TEST(Fault, AWindowsRankThatHasDiedIsNamed) {
  for (const int which : {0, 1, 2}) {
    const auto problems = TestRanks(2).in_processes([which](Group& group) {
      std::vector<std::uint64_t> here(100000);
      const Window window = group.expose(Region{reinterpret_cast<std::byte*>(here.data()), 800000, host(0)});
      if (group.rank() == 1) die();
      std::vector<std::byte> data(800000);
      const auto once = [&] {
        if (which == 0) window.put({data.data(), data.size(), host(0)}, 1, 0);
        if (which == 1) window.get({data.data(), data.size(), host(0)}, 1, 0);
        if (which == 2) window.signal(1, 0, 1);
      };
      try {
        for (const Deadline deadline = Deadline::in(10); !deadline.passed();) once();
      } catch (const Error& error) {
        try {
          group.barrier();
        } catch (const Error& again) {
          require_that(std::string(error.what()) == again.what(), "the group to have failed by that");
          throw;
        }
      }
    });
    expect_each(survivors(problems), 1, "rank 1 (process ");
  }
}

// Faults: host D
TEST(Fault, ARankThatIsKilledIsAnErrorAtAllThatWaitForAnyRank) {
  for (const bool probes : {false, true}) {
    const auto problems = TestRanks(4).in_processes([&](Group& group) {
      if (group.rank() == 2) die();
      std::vector<float> data(1000);
      if (probes) static_cast<void>(group.probe());
      if (group.rank() == 1) group.recv(std::span(data), any_source, any_tag, Mode::begin).wait();
      group.recv(std::span(data), any_source);
    });
    expect_each(survivors(problems), 3, "rank 2 (process ");
  }
}

}  // namespace
}  // namespace waywiser
