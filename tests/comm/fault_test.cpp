// The errors of the other ranks if a rank ends, or is late; and interrupted waits.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "tests/comm/faults.hpp"
#include "tests/comm/test_ranks.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/base/json.hpp"
#include "waywiser/base/units.hpp"
#include "waywiser/comm/bootstrap/join_options.hpp"
#include "waywiser/comm/bootstrap/runtime_folder.hpp"
#include "waywiser/comm/bootstrap/unix_socket.hpp"
#include "waywiser/comm/message/call.hpp"

namespace waywiser {
namespace {

// As `waywiser status` shows it.
bool waits_unusually_long(int process, int rank) {
  const std::string name = "rank-" + std::to_string(process) + "-" + std::to_string(rank) + ".sock";
  const Descriptor status = connect_at(runtime_folder() / name);
  pollfd answer{status.number(), POLLIN, 0};
  if (::poll(&answer, 1, 1000) != 1) return false;  // the thread that answers may not have been awake
  std::array<char, 4096> line{};
  const ssize_t got = ::recv(status.number(), line.data(), line.size(), 0);
  return got > 0 && Json::parse(line.begin(), line.begin() + got).at("waited") > 0.0;
}

// Faults: forming Q
TEST(Fault, WhoWaitsForOthersToCloseCanBeInterrupted) {
  const TestRanks ranks(2);
  const auto late = ranks.start(1, [&](int self) {
    Group group = Group::join(ranks.options(self));
    receive_something(group, 0);
  });
  const auto interrupted = ranks.start(0, [&](int self) {
    JoinOptions options = ranks.options(self);
    bool has_joined = false;
    options.interrupted = [&] { return has_joined; };
    Group group = Group::join(options);
    has_joined = true;
    group.close();
  });
  EXPECT_TRUE(holds(TestRanks::wait(interrupted), "rank 0: interrupted in leave"));
  EXPECT_TRUE(holds(TestRanks::wait(late), "rank 0: interrupted in leave"));
}

// Faults: forming J
TEST(Fault, WhoWaitsForOthersToJoinCanBeInterrupted) {
  for (const int rank : {0, 1}) {
    const TestRanks ranks(2);
    JoinOptions options = ranks.options(rank);
    int questions = 0;
    options.interrupted = [&] { return ++questions > 2; };
    try {
      Group::join(options);
      ADD_FAILURE() << "joined alone";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::interrupted) << error.what();
    }
  }
}

// Faults: host R
TEST(Fault, ARankThatEndsByAnErrorTakesTheOthersWithIt) {
  const auto problems = TestRanks(3).in_processes([](Group& group) {
    if (group.rank() == 1) throw Error(ErrorKind::corrupt, "a bug of the user");
    receive_something(group, 1);
  });
  ASSERT_EQ(problems.size(), 3u);
  EXPECT_TRUE(holds(problems[0], "rank 1: it has ended by an error")) << problems[0];
  EXPECT_TRUE(holds(problems[1], "a bug of the user")) << problems[1];
}

// Faults: forming E
TEST(Fault, ARankThatExitsWithACodeIsAnErrorAtTheOthersThatNamesIt) {
  for (const int victim : {0, 2}) {
    const auto problems = TestRanks(3).in_processes([&](Group& group) {
      if (group.rank() == victim) std::exit(7);
      receive_something(group, victim);
    });
    ASSERT_EQ(problems.size(), 3u);
    for (std::size_t rank = 0; rank < 3; ++rank)
      EXPECT_TRUE(holds(problems[rank], static_cast<int>(rank) == victim ? "exit 7" : ") ended with exit code 7"))
          << problems[rank];
  }
}

// The group is destroyed before the exit code is known.
// Faults: forming E
TEST(Fault, ARankWhoseMainReturnsACodeIsAnErrorAtTheOthersThatNamesIt) {
  for (const int victim : {0, 2}) {
    const TestRanks ranks(3);
    const auto main_of = [&](int self) {
      Group group = Group::join(ranks.options(self));
      if (self == victim) return 7;
      receive_something(group, victim);
      return 0;
    };
    std::vector<TestRanks::Process> processes;
    for (int rank = 0; rank < 3; ++rank)
      processes.push_back(ranks.start(rank, [&](int self) { std::exit(main_of(self)); }));
    for (int rank = 0; rank < 3; ++rank) {
      const std::string end = TestRanks::wait(processes[static_cast<std::size_t>(rank)]);
      EXPECT_TRUE(holds(end, rank == victim ? "exit 7" : ") ended with exit code 7")) << end;
    }
  }
}

TEST(Fault, ExitCode0IsNoError) {
  EXPECT_EQ(TestRanks(3).in_processes([](Group& group) {
    if (group.rank() == 1) std::exit(0);
    ::usleep(100'000);
  }),
            Problems());
}

// Faults: host S
TEST(Fault, ADeadlineSaysThatNoRankHasSent) {
  for (const bool probes : {false, true}) {
    TestRanks ranks(2);
    const auto problems = ranks.in_processes([&](Group& group) {
      if (group.rank() == 0) group.set_timeout(0.3);  // the first whose deadline passes
      std::int32_t data = 0;
      if (group.rank() == 0 && probes) static_cast<void>(group.probe());
      if (group.rank() == 0) group.recv(std::span(&data, 1), any_source);
      group.barrier();
    });
    ASSERT_EQ(problems.size(), 2u);
    EXPECT_TRUE(holds(problems[0] + problems[1], "waited 300 ms in ")) << problems[0];
    EXPECT_TRUE(holds(problems[0], probes ? "in probe #1 from any rank: no message has come"
                                          : "in recv #1 of 1 int32 from any rank: no message has come"))
        << problems[0];
  }
}

// Faults: host S
TEST(Fault, ADeadlineNamesWhatWasWaitedFor) {
  TestRanks ranks(2);
  const auto problems = ranks.in_processes([](Group& group) {
    group.barrier();
    group.set_timeout(0.3);
    if (group.rank() == 1) return receive_something(group, 0);
    std::byte data{};
    group.recv(std::span(&data, 1), 1, 7);
  });
  ASSERT_EQ(problems.size(), 2u);
  // Whichever came first; both hear of it.
  EXPECT_TRUE(holds(problems[1], "waited 300 ms in recv #1 of 1000 float32 from rank 0: 0 of 4000 bytes arrived") ||
              holds(problems[1], "waited 300 ms in recv #1 of 1 uint8 from rank 1: 0 of 1 bytes arrived"))
      << problems[1];
}

// Faults: host S
TEST(Fault, ADeadlineInAPartNamesTheRankOfTheJob) {
  for (const bool collective : {false, true}) {
    TestRanks ranks(3);
    const auto problems = ranks.in_processes([&](Group& group) {
      auto part = group.split(group.rank() == 0 ? 0 : 1);
      if (group.rank() == 1) part->set_timeout(0.3);  // the first whose deadline passes
      if (group.rank() == 0) return receive_something(group, 1);
      if (group.rank() == 2) return receive_something(group, 0);
      std::vector<float> data(1000);
      if (collective) part->all_reduce(std::span(data), std::span(data));
      receive_something(*part, 1);
    });
    ASSERT_EQ(problems.size(), 3u);
    EXPECT_TRUE(holds(problems[1], collective ? "waiting for rank 1 (rank 2 of the job)"
                                              : "from rank 1, group 1 (rank 2 of the job)"))
        << problems[1];
  }
}

// Rank 0 waits for rank 1, which waits for rank 2: rank 0 cannot know that rank 2 is the culprit, but rank 1 says so.
TEST(Fault, ARankThatWaitsItselfSaysForWhom) {
  const auto problems = TestRanks(3).in_processes([](Group& group) {
    if (group.rank() == 2) return receive_something(group, 0);
    if (group.rank() == 1) {
      const int process[] = {::getpid()};
      group.send(std::span(process), 0);
      return receive_something(group, 2);
    }
    int process[1];
    group.recv(std::span(process), 1);
    for (const Deadline deadline = Deadline::in(20); !waits_unusually_long(process[0], 1); ::usleep(10'000))
      require_that(!deadline.passed(), "rank 1 waits");
    group.set_timeout(2);
    receive_something(group, 1);
  });
  ASSERT_EQ(problems.size(), 3u);
  for (const std::string& problem : problems)
    EXPECT_TRUE(holds(problem, "rank 0: waited 2.00 s in recv #2")) << problem;
  EXPECT_TRUE(holds(problems[1], "; rank 1 itself had waited ")) << problems[1];
  EXPECT_TRUE(holds(problems[1], " in recv #2 of 1000 float32 from rank 2: 0 of 4000 bytes arrived")) << problems[1];
  EXPECT_FALSE(holds(problems[0], "itself")) << problems[0];
}

// Faults: host L
TEST(Fault, ARankThatIsLateIsWaitedFor) {
  EXPECT_EQ(TestRanks(2).in_processes([](Group& group) {
    if (group.rank() == 0) return receive_something(group, 1);
    ::usleep(900'000);  // longer than what makes a rank report that it waits
    const std::vector<float> data(1000);
    group.send(std::span(data), 0);
  }),
            Problems());
}

// Faults: forming L
TEST(Fault, WaitingForARankThatHasLeft) {
  const auto problems = TestRanks(3).in_processes([](Group& group) {
    if (group.rank() == 1) receive_something(group, 2);
  });
  ASSERT_FALSE(problems.empty());
  EXPECT_TRUE(holds(problems[0], "rank 1 waits in recv #1 of 1000 float32 from rank 2, which has left the group"))
      << problems[0];
}

TEST(Fault, WaitingForAnyRankWhenAllOthersHaveLeft) {
  const auto problems = TestRanks(3).in_processes([](Group& group) {
    if (group.rank() == 1) static_cast<void>(group.probe());
  });
  ASSERT_FALSE(problems.empty());
  EXPECT_TRUE(holds(problems[0], "rank 1 waits in probe #1 from any rank, but all others have left the group"))
      << problems[0];
}

}  // namespace
}  // namespace waywiser
