#include "waywiser/comm/session/lane_execution.hpp"

#include <gtest/gtest.h>

#include "tests/comm/faults.hpp"
#include "tests/comm/test_ranks.hpp"
#include "tests/comm/two_runners.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/comm/session/execution.hpp"
#include "waywiser/comm/session/in_call.hpp"

namespace waywiser {
namespace {

// One of two ranks that run schedules made by hand, by lanes or as messages.
class LaneRunner {
 public:
  explicit LaneRunner(const JoinOptions& options)
      : session_(std::make_shared<Session>(options)), execution_(*session_), by_lanes_(*session_) {}

  int rank() const { return session_->rank(); }
  Session& session() { return *session_; }
  std::shared_ptr<const LaneSchedule> made_of(const Schedule& schedule) {
    return lane_schedule(schedule, sizeof(float), *members(), session_->engine().mailboxes());
  }
  void run(const Schedule& schedule, std::vector<float>& input, std::vector<float>& output, bool by_lanes,
           ReduceOp op = ReduceOp::sum) {
    const Call call{CallKind::all_reduce, DataType::float32, op, 0, -1, -1, ++calls_, input.size()};
    const InCall in_call(*session_, call);
    if (by_lanes) {
      const auto made = made_of(schedule);
      require_that(made != nullptr, "lanes can carry it");
      by_lanes_.begin(members(), call, made, ConstElements(std::span(input)).region,
                      Elements(std::span(output)).region);
      return session_->wait(by_lanes_);
    }
    execution_.begin(members(), call, std::make_shared<const Schedule>(schedule), std::span(input), std::span(output));
    session_->wait(execution_);
  }

 private:
  std::shared_ptr<const Members> members() const { return std::make_shared<const Members>(Members{0, rank(), {0, 1}}); }

  std::shared_ptr<Session> session_;
  Execution execution_;
  LaneExecution by_lanes_;
  std::uint64_t calls_ = 0;
};

Schedule with_steps(int rank, std::size_t count, std::vector<Step> steps) {
  Schedule schedule{"by hand", rank, 2, count, count, count, {}};
  schedule.steps = std::move(steps);
  return schedule;
}

// Each rank adds the other's values to its own.
Schedule sum_in_place(int rank, std::size_t count) {
  const Block in{Area::input, 0, count}, out{Area::output, 0, count};
  return with_steps(rank, count,
                    {{StepKind::copy, 0, -1, out, in},
                     {StepKind::receive_reduce, 1, 1 - rank, out, {}},
                     {StepKind::send, 1, 1 - rank, {}, in}});
}

// The same with a sum apart.
Schedule sum_apart(int rank, std::size_t count) {
  const Block in{Area::input, 0, count}, out{Area::output, 0, count}, apart{Area::scratch, 0, count};
  return with_steps(rank, count,
                    {{StepKind::copy, 0, -1, out, in},
                     {StepKind::send, 0, 1 - rank, {}, in},
                     {StepKind::receive, 0, 1 - rank, apart, {}},
                     {StepKind::reduce, 1, -1, out, apart}});
}

TEST(LaneExecution, GivesWhatAnExecutionGivesAlsoBesideOne) {
  EXPECT_EQ(run_in_two<LaneRunner>([](LaneRunner& runner) {
              for (const std::size_t count : {0, 1, 2, 3, 4, 7, 100, 2048})
                for (const bool one_by_lanes : {false, true})
                  for (const bool other_by_lanes : {false, true})
                    for (const auto& make : {sum_in_place, sum_apart}) {
                      std::vector<float> mine = made_by(runner.rank(), count), sum(count);
                      const bool by_lanes = runner.rank() == 0 ? one_by_lanes : other_by_lanes;
                      runner.run(make(runner.rank(), count), mine, sum, by_lanes);
                      const std::vector<float> theirs = made_by(1 - runner.rank(), count);
                      for (std::size_t i = 0; i < count; ++i) require_that(sum[i] == mine[i] + theirs[i], "the sum");
                      runner.run(make(runner.rank(), count), mine, sum, by_lanes, ReduceOp::avg);
                      require_that(count == 0 || sum[0] == 500, "the average");
                      runner.run(make(runner.rank(), count), mine, mine, by_lanes, ReduceOp::max);
                      require_that(mine == made_by(1, count), "the largest, in place");
                    }
            }),
            no_problems);
}

// Each rank sends more than a lane has room for before it receives anything.
TEST(LaneExecution, FullLanesMakeRoomForEachOther) {
  EXPECT_EQ(run_in_two<LaneRunner>([](LaneRunner& runner) {
              constexpr std::size_t each = 2048, blocks = 40;
              const int other = 1 - runner.rank();
              std::vector<Step> steps;
              for (std::size_t i = 0; i < blocks; ++i)
                steps.push_back({StepKind::send, 0, other, {}, {Area::input, i * each, each}});
              for (std::size_t i = 0; i < blocks; ++i)
                steps.push_back({StepKind::receive, 1, other, {Area::output, i * each, each}, {}});
              std::vector<float> mine = made_by(runner.rank(), each * blocks), theirs(each * blocks);
              runner.run(with_steps(runner.rank(), each * blocks, steps), mine, theirs, true);
              require_that(theirs == made_by(other, each * blocks), "what the other has sent");
            }),
            no_problems);
}

TEST(LaneExecution, WhatLanesCannotCarryIsNotMade) {
  EXPECT_EQ(run_in_two<LaneRunner>([](LaneRunner& runner) {
              const int rank = runner.rank();
              require_that(runner.made_of(sum_in_place(rank, 2048)) != nullptr, "8 KiB");
              require_that(runner.made_of(sum_in_place(rank, 2049)) == nullptr, "more than 8 KiB");
              require_that(runner.made_of(sum_in_place(1 - rank, 1)) == nullptr, "of the other rank");
              const auto with = [&](Step step) { return runner.made_of(with_steps(rank, 8, {std::move(step)})); };
              const Block in{Area::input, 0, 8}, out{Area::output, 0, 8};
              require_that(with({StepKind::send, 0, 1 - rank, {}, in}) != nullptr, "a send");
              require_that(with({StepKind::send, 0, rank, {}, in}) == nullptr, "to itself");
              require_that(with({StepKind::put, 0, 1 - rank, out, in}) == nullptr, "a put");
              require_that(with({StepKind::signal, 0, 1 - rank, {}, {}}) == nullptr, "a signal");
              require_that(with({StepKind::wait, 0, 1 - rank, {}, {}}) == nullptr, "a wait");
              require_that(with({StepKind::pack, 0, -1, out, in}) == nullptr, "a pack");
              require_that(with({StepKind::copy, 0, -1, {Area::array, 0, 8}, in}) == nullptr, "an array of its own");
              require_that(with({StepKind::send, 0, 1 - rank, {}, {Area::input, 0, 8, 0, 1}}) == nullptr, "a layout");
            }),
            no_problems);
}

TEST(LaneExecution, ShorterArraysAreRefused) {
  EXPECT_EQ(run_in_two<LaneRunner>([](LaneRunner& runner) {
              std::vector<float> two(2);
              try {
                runner.run(sum_in_place(runner.rank(), 3), two, two, true);
                require_that(false, "a refusal");
              } catch (const Error& error) {
                require_that(holds(error.what(), "the schedule takes 12 bytes and gives 12"), error.what());
              }
            }),
            no_problems);
}

TEST(LaneExecution, UnlikeMessagesAreNamed) {
  const Problems problems = run_in_two<LaneRunner>([](LaneRunner& runner) {
    std::vector<float> mine(4);
    const std::size_t count = runner.rank() == 0 ? 3 : 4;
    runner.run(sum_in_place(runner.rank(), count), mine, mine, true);
    runner.run(sum_in_place(runner.rank(), 1), mine, mine, true);  // the other one has seen it
  });
  EXPECT_EQ(problems.size(), 2U);
  for (const std::string& problem : problems)
    EXPECT_TRUE(holds(problem, "rank 0 sent 12 bytes where 16 were expected") ||
                holds(problem, "rank 1 sent 16 bytes where 12 were expected"))
        << problem;
}

TEST(LaneExecution, SaysWhatItHasWaitedFor) {
  const Problems problems = run_in_two<LaneRunner>([](LaneRunner& runner) {
    std::vector<float> mine(4);
    if (runner.rank() == 0) runner.session().set_timeout(0.05);
    const Block out{Area::output, 0, 4};
    const Schedule takes = with_steps(runner.rank(), 4, {{StepKind::receive, 0, 1 - runner.rank(), out, {}}});
    runner.run(takes, mine, mine, true);
  });
  expect_each(problems, 2,
              "rank 0: waited 50.0 ms in all_reduce #1 of 4 float32, sum: 0 of 16 bytes arrived (by hand), "
              "waiting for rank 1");
}

}  // namespace
}  // namespace waywiser
