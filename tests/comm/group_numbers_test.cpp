#include "waywiser/comm/session/group_numbers.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <span>

#include "tests/comm/test_ranks.hpp"

namespace waywiser {
namespace {

TEST(GroupNumbers, TheFirstThatNobodyUses) {
  GroupNumbers numbers;
  EXPECT_EQ(GroupNumbers::first_free(0, numbers.used()), 1);
  const auto one = numbers.take(1);
  auto two = numbers.take(2);
  EXPECT_EQ(GroupNumbers::first_free(1, numbers.used()), 3);
  two.reset();
  EXPECT_EQ(GroupNumbers::first_free(1, numbers.used()), 2);
}

TEST(GroupNumbers, AreTakenIfFree) {
  GroupNumbers numbers;
  std::shared_ptr<const void> one = numbers.take_if_free(1);
  EXPECT_TRUE(one);
  EXPECT_FALSE(numbers.take_if_free(1));
  one.reset();
  EXPECT_TRUE(numbers.take_if_free(1));
}

TEST(GroupNumbers, ComeAgainInOrder) {
  const GroupNumbers numbers;
  const std::int64_t last = most_groups - 1;
  EXPECT_EQ(GroupNumbers::first_free(last, numbers.used()), last);
  EXPECT_EQ(GroupNumbers::first_free(last + 1, numbers.used()), last + 2) << "the group of all ranks has the first one";
}

TEST(GroupNumbers, AreAllTakenOnce) {
  GroupNumbers numbers;
  std::vector<std::shared_ptr<const void>> taken;
  for (std::int64_t count = 1; count < most_groups; ++count) {
    ASSERT_EQ(GroupNumbers::first_free(1, numbers.used()), count);
    taken.push_back(numbers.take(count));
  }
  EXPECT_EQ(GroupNumbers::first_free(1, numbers.used()), std::nullopt);
  taken[99].reset();
  EXPECT_EQ(GroupNumbers::first_free(most_groups, numbers.used()), most_groups + 100);
}

TEST(GroupNumbers, AProgramMaySplitInALoop) {
  EXPECT_EQ(TestRanks(2).in_threads([](Group& group) {
    std::optional<Group> kept = group.split(0);
    for (std::uint32_t i = 0; i < 2 * most_groups; ++i) {
      std::optional<Group> half = group.split(0);
      const int mine = static_cast<int>(i) + half->rank(), other = 1 - half->rank();
      int got = -1;
      half->sendrecv(std::span(&mine, 1), other, std::span(&got, 1), other);
      require_that(got == static_cast<int>(i) + other, "what the other has sent in this group");
    }
    kept->barrier();
  }),
            no_problems);
}

TEST(GroupNumbers, AMessageOfAGroupThatHasGoneIsNotTaken) {
  const auto problems = TestRanks(2).in_threads([](Group& group) {
    const int lost = 77;
    if (std::optional<Group> half = group.split(0); half->rank() == 0) half->send(std::span(&lost, 1), 1);
    for (std::uint32_t i = 0; i < most_groups - 2; ++i) static_cast<void>(group.split(0));
    std::optional<Group> same = group.split(0);
    int got = -1;
    if (same->rank() == 1) {
      same->recv(std::span(&got, 1), 0);
      require_that(false, "an error instead of " + std::to_string(got));
    } else {
      same->barrier();
    }
  });
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_NE(problems[1].find("rank 0 sent this message in a group that no longer exists, where it was not received"),
            std::string::npos)
      << problems[1];
}

}  // namespace
}  // namespace waywiser
