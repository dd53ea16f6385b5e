// The explorer finds the errors of small protocols that are wrong on purpose, and finds none in correct ones.
#include "tests/explorer/explorer.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <iostream>

#include "tests/explorer/expect.hpp"

namespace waywiser::explorer {
namespace {

// Prints at the end how many schedules all scenarios have had together.
class Total : public testing::Environment {
  void TearDown() override { std::cout << "explored " << all_explored << " schedules" << std::endl; }
};
const testing::Environment* const total = testing::AddGlobalTestEnvironment(new Total);

// A box for one value between a giver and a taker, with the bugs that can be put in.
struct Box {
  std::atomic<std::uint32_t> full{0}, asleep{0}, woken{0};
  std::uint32_t value = 0;
};

enum class Bug { none, relaxed_store, lost_wake_up, taken_twice, write_after_return, deadlock };

void share(Course& course, Box& box) { course.regions.share("the box", &box, sizeof box, 4); }

// The taker sleeps only after it has announced this and has checked the box once more.
void wake_up_scenario(Course& course, Bug bug) {
  Box box;
  share(course, box);
  course.thread("giver", [&] {
    box.value = 7;
    box.full.store(1, bug == Bug::relaxed_store ? std::memory_order_relaxed : std::memory_order_seq_cst);
    if (box.asleep.load() != 0) box.woken.store(1);
  });
  course.thread("taker", [&] {
    if (bug != Bug::lost_wake_up) box.asleep.store(1);
    if (box.full.load() == 0) {
      if (bug == Bug::lost_wake_up) box.asleep.store(1);
      while (box.woken.load() == 0) course.idle();
    }
    course.require(box.value == 7, "the value has not come");
  });
  course.go();
}

Result explored(Bug bug, unsigned deviations = 2) {
  return explore([bug](Course& course) { wake_up_scenario(course, bug); }, {.deviations = deviations});
}

TEST(Explorer, FindsNothingWhereAllIsRight) {
  const Result result = explored(Bug::none, 4);
  EXPECT_EQ(result.problem, "") << result.schedule;
  EXPECT_GT(result.schedules, 10u);
}

TEST(Explorer, FindsALostWakeUp) {
  EXPECT_EQ(explored(Bug::lost_wake_up).problem, "a deadlock: taker wait for ever");
  EXPECT_EQ(explored(Bug::lost_wake_up, 0).problem, "");  // it takes a deviation
}

TEST(Explorer, FindsAStoreThatPublishesNothing) {
  EXPECT_EQ(explored(Bug::relaxed_store).problem, "taker: nothing orders two accesses to the box");
}

// Two takers of one message: each checks first and takes later, or does both in one atomic step.
void take_scenario(Course& course, Bug bug) {
  Box box;
  share(course, box);
  std::uint32_t completions = 0;
  box.full = 1;
  const auto take = [&] {
    if (bug == Bug::taken_twice) {
      if (box.full.load() == 0) return;
      box.full.store(0);
      ++completions;
    } else if (box.full.exchange(0) != 0) {
      ++completions;
    }
  };
  course.thread("first", take);
  course.thread("second", take);
  course.go();
  course.require(completions == 1, completions == 0 ? "a lost completion" : "a doubled completion");
}

TEST(Explorer, FindsADoubledCompletion) {
  const auto of = [](Bug bug) { return explore([bug](Course& course) { take_scenario(course, bug); }); };
  EXPECT_EQ(of(Bug::taken_twice).problem, "a doubled completion");
  EXPECT_EQ(of(Bug::none).problem, "");
}

// The owner takes its memory back. A correct writer claims the memory before it writes; a wrong one only checks.
void give_back_scenario(Course& course, Bug bug) {
  Box box;
  std::uint32_t memory = 0;
  share(course, box);
  course.regions.share("the memory", &memory, sizeof memory, 4);
  course.thread("writer", [&] {
    const bool mine = bug == Bug::write_after_return ? box.full.load() == 0 : box.full.exchange(1) == 0;
    course.step();
    if (mine) memory = 5;
    box.woken.store(1);
  });
  course.thread("owner", [&] {
    if (box.full.exchange(1) == 0 || bug == Bug::write_after_return) return course.give_back(&memory);
    while (box.woken.load() == 0) course.idle();
    course.give_back(&memory);
  });
  course.go();
}

TEST(Explorer, FindsAWriteAfterTheReturn) {
  const auto scenario = [](Bug bug) { return [bug](Course& course) { give_back_scenario(course, bug); }; };
  EXPECT_EQ(explore(scenario(Bug::write_after_return)).problem, "owner: nothing orders two accesses to the memory");
  // The writer has checked, and continues after the owner has taken its memory back.
  EXPECT_EQ(replay(scenario(Bug::write_after_return), "2:1").problem,
            "writer: the memory is touched after it was given back");
  EXPECT_EQ(explore(scenario(Bug::none)).problem, "");
}

// Two locks, taken in the same order by both threads or in opposite orders.
void lock_scenario(Course& course, Bug bug) {
  Box box;
  share(course, box);
  const auto lock = [&](std::atomic<std::uint32_t>& one) {
    while (one.exchange(1) != 0) course.idle();
  };
  const auto both = [&](std::atomic<std::uint32_t>& one, std::atomic<std::uint32_t>& two) {
    lock(one);
    lock(two);
    two.store(0);
    one.store(0);
  };
  course.thread("first", [&] { both(box.full, box.asleep); });
  course.thread("second", [&] { bug == Bug::deadlock ? both(box.asleep, box.full) : both(box.full, box.asleep); });
  course.go();
}

TEST(Explorer, FindsADeadlock) {
  const auto of = [](Bug bug) { return explore([bug](Course& course) { lock_scenario(course, bug); }); };
  EXPECT_EQ(of(Bug::deadlock).problem, "a deadlock: first, second wait for ever");
  EXPECT_EQ(of(Bug::none).problem, "");
}

TEST(Explorer, AScheduleThatFailedFailsAgain) {
  const Scenario scenario = [](Course& course) { take_scenario(course, Bug::taken_twice); };
  const Result found = explore(scenario);
  ASSERT_FALSE(found.schedule.empty());
  EXPECT_NE(found.schedule, "default");
  const Result again = replay(scenario, found.schedule);
  EXPECT_EQ(again.problem, found.problem);
  EXPECT_EQ(again.schedules, 1u);
  EXPECT_EQ(replay(scenario, "default").problem, "");
}

// A scenario that never ends, and one that is too large.
TEST(Explorer, KnowsItsLimits) {
  const Result endless = explore([](Course& course) {
    course.thread("busy", [&] {
      for (;;) course.step();
    });
    course.go();
  });
  EXPECT_EQ(endless.problem, "busy: it does not end");
  const Result many = explore(
      [](Course& course) {
        for (const char* name : {"one", "two"})
          course.thread(name, [&] {
            for (int i = 0; i < 20; ++i) course.step();
          });
        course.go();
      },
      {.deviations = 3, .schedules = 100});
  EXPECT_EQ(many.problem, "there are more than 100 schedules");
}

}  // namespace
}  // namespace waywiser::explorer
