// Schedules that are carried out, under every order in which their messages come.
#include "waywiser/comm/session/execution.hpp"

#include <gtest/gtest.h>

#include "tests/collective/made_up_call.hpp"
#include "tests/explorer/expect.hpp"
#include "tests/explorer/network.hpp"
#include "waywiser/collective/collective_algorithm.hpp"

namespace waywiser::explorer {
namespace {

// All ranks of one collective.
struct Job {
  Job(Course& of, const CollectiveAlgorithm& row, const MadeUpCall& made_up, int ranks, const EvaluationTerms& terms)
      : course(of), network(of), type(terms.type), op(terms.op) {
    std::vector<int> world;
    for (int rank = 0; rank < ranks; ++rank) world.push_back(rank);
    for (int rank = 0; rank < ranks; ++rank) {
      schedules.push_back(row.make(made_up.of(rank)));
      arrays.push_back(made_up.arrays(schedules.back()));
      sessions.push_back(std::make_unique<Session>(network, rank));
      executions.push_back(std::make_unique<Execution>(*sessions.back()));
      members.push_back(std::make_shared<const Members>(Members{0, rank, world}));
    }
  }

  void begin(std::size_t rank) {
    const std::size_t size = bytes_of(type);
    PlainArrays& mine = arrays[rank];
    const Schedule& schedule = schedules[rank];
    const ConstElements input({mine.bytes.data() + mine.input_at * size, schedule.input_count * size, host(0)}, type);
    const Elements output({mine.bytes.data() + mine.output_at * size, schedule.output_count * size, host(0)}, type);
    const Call call{CallKind::all_reduce, type, op, 0, -1, -1, 1, schedule.input_count};
    executions[rank]->begin(members[rank], call, std::make_shared<const Schedule>(schedule), input, output);
  }
  // Advances until complete. If `may_give_up`, it may be given up before any turn, and when another rank has given up.
  void carry_out(std::size_t rank, bool may_give_up) {
    begin(rank);
    while (!executions[rank]->advance()) {
      if (failed || (may_give_up && course.choose(2, true) != 0)) {
        failed = true;
        executions[rank]->abandon();
        return course.changed();
      }
      course.idle();
    }
    ++completions;
    course.require(executions[rank]->advance(), "what was complete is so no more");
  }
  void go(bool may_give_up) {
    for (std::size_t rank = 0; rank < executions.size(); ++rank)
      course.thread("rank " + std::to_string(rank), [this, rank, may_give_up] { carry_out(rank, may_give_up); });
    course.thread("the network", [this] { network.carry(); }, true);
    course.go();
  }

  Course& course;
  Network network;
  DataType type;
  ReduceOp op;
  std::vector<Schedule> schedules;
  std::vector<PlainArrays> arrays;
  std::vector<std::shared_ptr<const Members>> members;
  std::vector<std::unique_ptr<Session>> sessions;
  std::vector<std::unique_ptr<Execution>> executions;
  std::size_t completions = 0;
  bool failed = false;
};

class ExploredSchedules : public testing::TestWithParam<CollectiveAlgorithm> {};

INSTANTIATE_TEST_SUITE_P(Schedules, ExploredSchedules, testing::ValuesIn(algorithms().begin(), algorithms().end()),
                         [](const auto& instance) {
                           return std::string(name(instance.param.operation)) + "_" + std::string(instance.param.name);
                         });

void explore_call(const CollectiveAlgorithm& row, int ranks, const EvaluationTerms& terms, bool may_give_up) {
  const MadeUpCall made_up(row.operation, ranks, terms, terms.seed % 2 == 1);
  if (row.why_unavailable(made_up.of(0))) return;
  expect_no_problem(std::string(row.name) + ", " + std::to_string(ranks) + " ranks, seed " + std::to_string(terms.seed),
                    [&](Course& course) {
                      Job job(course, row, made_up, ranks, terms);
                      job.go(may_give_up);
                      if (job.failed) {
                        for (const auto& one : job.executions) one->abandon();
                        return course.require(job.network.is_empty(), "a message that was given up is under way");
                      }
                      course.require(job.completions == static_cast<std::size_t>(ranks), "a rank has not completed");
                      const std::string wrong = made_up.wrong(job.schedules, job.arrays);
                      if (!wrong.empty()) course.fail(wrong);
                    },
                    {.deviations = 1, .switches_cost = true});
}

TEST_P(ExploredSchedules, GivesTheRightResultInAnyOrderOfMessages) {
  for (int ranks = 2; ranks <= 4; ++ranks)
    for (const std::uint64_t seed : {3u, 4u, 8u})
      explore_call(GetParam(), ranks, {DataType::int32, ReduceOp::sum, seed, -1}, false);
}

TEST_P(ExploredSchedules, LeavesNothingUnderWayWhenItIsGivenUp) {
  for (int ranks = 2; ranks <= 3; ++ranks)
    explore_call(GetParam(), ranks, {DataType::float32, ReduceOp::sum, 4, -1}, true);
}

}  // namespace
}  // namespace waywiser::explorer
