// Whatever is timed: who takes turns, how often, until when.
#include "waywiser/measure/contest.hpp"

#include <gtest/gtest.h>

namespace waywiser {
namespace {

// Contenders with known times, and a clock that only their turns move.
class MadeUpContest final : public Contest {
 public:
  MadeUpContest(std::vector<Seconds> times, const TurnLength& turn = {.aim = 1, .most_repetitions = 100})
      : Contest(turn, 1), times_(std::move(times)) {
    for (std::size_t i = 0; i < times_.size(); ++i) enter();
  }

  std::vector<std::pair<std::size_t, int>> turns;
  std::size_t fails = 99, impossible = 99, disturbed = 99;

 private:
  std::vector<Sample> take(std::size_t which, int repetitions) override {
    turns.emplace_back(which, repetitions);
    clock_ += times_[which] * repetitions;
    Sample sample{.seconds = times_[which]};
    if (which == fails) sample.failed = "it is broken";
    if (which == disturbed) sample.disturbed = "the machine slept";
    return {sample, sample};
  }
  Seconds now() const override { return clock_; }
  std::optional<std::string> why_impossible(std::size_t which, Seconds) const override {
    return which == impossible ? std::optional<std::string>("faster than light") : std::nullopt;
  }

  std::vector<Seconds> times_;
  Seconds clock_ = 0;
};

const auto go_on = [] { return true; };
constexpr Effort all_go_on{.least = 2, .most = 6, .precision = 0, .share = 0, .hopeless = 0};

TEST(Contest, ATurnTakesAboutAsLongAsIsAimedAt) {
  MadeUpContest contest({0.1, 5, 1e-6});
  EXPECT_EQ(contest.contenders()[0].repetitions, 10);
  EXPECT_EQ(contest.contenders()[1].repetitions, 1);
  EXPECT_EQ(contest.contenders()[2].repetitions, 100);
  EXPECT_TRUE(contest.contenders()[0].samples.empty()) << "what warms up does not count";
  EXPECT_EQ(MadeUpContest({0.1}, {}).contenders()[0].repetitions, 1);
}

TEST(Contest, EveryRoundHasATurnOfEach) {
  MadeUpContest contest({1, 2, 3});
  contest.turns.clear();
  EXPECT_EQ(contest.run({.least = 4, .most = 4, .precision = 0, .hopeless = 0}, go_on), 4);
  ASSERT_EQ(contest.turns.size(), 12u);
  for (std::size_t first = 0; first < 12; first += 3) {
    std::size_t sum = 0;
    for (std::size_t i = first; i < first + 3; ++i) sum += std::size_t{1} << (4 * contest.turns[i].first);
    EXPECT_EQ(sum, 0x111u);
  }
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(contest.turns[i], contest.turns[5 - i]) << "the second round goes backwards";
    EXPECT_EQ(contest.turns[6 + i], contest.turns[11 - i]);
  }
  EXPECT_EQ(contest.contenders()[2].samples.size(), 8u) << "two of each turn";
}

TEST(Contest, TheShareEndsItAfterTheLeastRounds) {
  EXPECT_EQ(MadeUpContest({1, 1}).run(all_go_on, go_on), 2);
  Effort longer = all_go_on;
  longer.share = 7;
  EXPECT_EQ(MadeUpContest({1, 1}).run(longer, go_on), 4);
  longer.share = 1000;
  EXPECT_EQ(MadeUpContest({1, 1}).run(longer, go_on), 6);
  longer.precision = 0.01;
  EXPECT_EQ(MadeUpContest({1, 1}).run(longer, go_on), 2) << "known precisely";
  EXPECT_EQ(MadeUpContest({1, 1}).run(longer, [] { return false; }), 0);
}

TEST(Contest, WhoIsHopelesslySlowGetsNoFurtherRounds) {
  Effort effort{.least = 4, .most = 4, .precision = 0, .hopeless = 2, .judged_from = 2};
  MadeUpContest contest({5, 1, 1.9});
  contest.run(effort, go_on);
  EXPECT_EQ(contest.contenders()[0].samples.size(), 4u);
  EXPECT_FALSE(contest.contenders()[0].failed) << "its time is known";
  EXPECT_EQ(contest.contenders()[2].samples.size(), 8u);
  EXPECT_EQ(contest.fastest(), 1);
  effort.keeps_first = true;
  MadeUpContest kept({5, 1, 3});
  kept.run(effort, go_on);
  EXPECT_EQ(kept.contenders()[0].samples.size(), 8u);
  EXPECT_EQ(kept.contenders()[2].samples.size(), 4u);
}

TEST(Contest, WhoFailsIsOutAndADisturbanceIsMarked) {
  MadeUpContest contest({1, 2, 3});
  contest.fails = 0;
  contest.impossible = 1;
  contest.disturbed = 2;
  contest.run(all_go_on, go_on);
  EXPECT_EQ(contest.contenders()[0].failed, "it is broken");
  EXPECT_FALSE(contest.contenders()[0].impossible);
  EXPECT_TRUE(contest.contenders()[1].impossible);
  EXPECT_EQ(contest.contenders()[1].failed, "faster than light");
  const Point point = make_point(contest.contenders()[2], 8, true);
  EXPECT_EQ(point.disturbed, 4);
  EXPECT_EQ(point.seconds, 3);
  EXPECT_EQ(contest.fastest(), 3);
}

}  // namespace
}  // namespace waywiser
