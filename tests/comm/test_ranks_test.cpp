#include "tests/comm/test_ranks.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace waywiser {
namespace {

// The child prints its failure, too: that is of this test.
TEST(TestRanks, AFailedExpectationOfARankIsItsProblem) {
  const auto problems = TestRanks(2).in_processes([](Group& group) {
    if (group.rank() == 1) ADD_FAILURE() << "made up";
    EXPECT_EQ(group.size(), 2);
  });
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_TRUE(problems[0].starts_with("rank 1: ") && problems[0].find("made up") != std::string::npos) << problems[0];
}

TEST(TestRanks, ARankThatThrowsIsItsProblem) {
  const auto problems = TestRanks(1).in_processes([](Group& group) { require_that(group.size() == 2, "two ranks"); });
  EXPECT_EQ(problems, (Problems{"rank 0: expected: two ranks"}));
}

TEST(TestRanks, ARankThatDoesNotEndIsKilled) {
  const TestRanks ranks(1);
  const TestRanks::Process process = ranks.start(0, [](int) {
    for (;;) ::pause();
  });
  EXPECT_EQ(TestRanks::wait(process, 0.1), "it has not ended in time");
}

}  // namespace
}  // namespace waywiser
