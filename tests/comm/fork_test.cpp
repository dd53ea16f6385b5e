// Processes that a rank forks have no part in its group, and do it no harm.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "tests/comm/test_ranks.hpp"
#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

// How the child of this rank ends: 0 when `body` returns.
int in_a_child(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      body();
    } catch (const std::exception&) {
      ::_exit(1);
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

void sum_of_ones(Group& group) {
  const std::vector<float> ones(10000, 1);
  std::vector<float> sum(ones.size());
  group.all_reduce(std::span(ones), std::span(sum));
  require_that(sum.front() == 2 && sum.back() == 2, "the sum");
}

TEST(Fork, AChildRefusesCallsAndItsParentGoesOn) {
  EXPECT_EQ(TestRanks(2).in_processes([](Group& group) {
    sum_of_ones(group);
    std::vector<float> here(100000);
    Future early = group.recv(std::span(here), 1 - group.rank(), 5, Mode::begin);
    const int end = in_a_child([&] {
      std::string why;
      try {
        sum_of_ones(group);
      } catch (const Error& error) {
        why = error.what();
      }
      require_that(why.find("this process was forked off a rank") != std::string::npos, why);
      group.abort("a child");
      group.close();
      const Group gone = std::move(group);
      const Future dropped = std::move(early);
    });
    require_that(end == 0, "the child's end, not " + std::to_string(end));
    sum_of_ones(group);
    const std::vector<float> mine(here.size(), 3);
    group.send(std::span(mine), 1 - group.rank(), 5);
    early.wait();
    require_that(here == mine, "what came");
  }),
            no_problems);
}

// The parent ends first, as where a program makes itself a daemon: the others hear that it is gone.
TEST(Fork, ADaemonThatARankHasBecomeHidesNoDeath) {
  const TestRanks ranks(2);
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const auto daemon = ranks.start(1, [&](int self) {
    Group group = Group::join(ranks.options(self));
    sum_of_ones(group);
    if (::fork() != 0) ::_exit(3);
    ::close(ends[1]);
    char end = 0;
    static_cast<void>(!::read(ends[0], &end, 1));  // until the other rank has heard
    ::_exit(0);
  });
  const auto other = ranks.start(0, [&](int self) {
    Group group = Group::join(ranks.options(self));
    sum_of_ones(group);
    sum_of_ones(group);
  });
  const std::string heard = TestRanks::wait(other);
  EXPECT_TRUE(heard.find("rank 1 (process ") != std::string::npos && heard.find("is gone") != std::string::npos)
      << heard;
  for (const int end : ends) ::close(end);
  TestRanks::wait(daemon);
}

}  // namespace
}  // namespace waywiser
