#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "tests/collective/made_up_call.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/collective/collective_algorithm.hpp"
#include "waywiser/collective/default_choice.hpp"
#include "waywiser/collective/extents.hpp"
#include "waywiser/comm/reduce.hpp"

namespace waywiser {
namespace {

constexpr int most_ranks = 17;

std::string full_name(const CollectiveAlgorithm& row) {
  return std::string(name(row.operation)) + "_" + std::string(row.name);
}

class EveryAlgorithm : public testing::TestWithParam<CollectiveAlgorithm> {};

INSTANTIATE_TEST_SUITE_P(Schedules, EveryAlgorithm, testing::ValuesIn(algorithms().begin(), algorithms().end()),
                         [](const auto& instance) { return full_name(instance.param); });

std::vector<Schedule> schedules_of(const CollectiveAlgorithm& row, const MadeUpCall& made_up, int ranks) {
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < ranks; ++rank) schedules.push_back(row.make(made_up.of(rank)));
  return schedules;
}

// The seed draws sizes (none, one, fewer than ranks, more), root, machines, pieces, and the order of the steps.
void expect_right(const CollectiveAlgorithm& row, int ranks, const EvaluationTerms& terms, bool in_place) {
  const MadeUpCall made_up(row.operation, ranks, terms, in_place);
  if (row.why_unavailable(made_up.of(0))) return;
  const std::vector<Schedule> schedules = schedules_of(row, made_up, ranks);
  std::vector<PlainArrays> arrays;
  for (const Schedule& schedule : schedules) arrays.push_back(made_up.arrays(schedule));
  const Evaluation evaluation = evaluate(schedules, arrays, terms);
  ASSERT_EQ(evaluation.wrong, "") << ranks << " ranks, seed " << terms.seed << (in_place ? ", in place" : "");
  ASSERT_EQ(made_up.wrong(schedules, arrays), "")
      << ranks << " ranks, " << name(terms.type) << " " << name(terms.op) << ", seed " << terms.seed;
}

TEST_P(EveryAlgorithm, GivesTheRightResultInAnyOrderOfStepsForAnyNumberOfRanks) {
  std::uint64_t number = 0;
  for (int ranks = 1; ranks <= most_ranks; ++ranks)
    for (int round = 0; round < 10; ++round, ++number) {
      const EvaluationTerms terms = terms_of(number, 1 + 31 * number);
      ASSERT_NO_FATAL_FAILURE(expect_right(GetParam(), ranks, terms, round % 2 == 1));
    }
}

CollectiveCall even_call(Collective operation, int rank, int ranks) {
  CollectiveCall call;
  call.operation = operation;
  call.rank = rank;
  call.ranks = ranks;
  call.root = ranks / 2;
  call.count = 16ul * 720720 * 17;  // what all numbers of ranks and parts divide
  call.chunk = call.count / 8;
  for (int other = 0; other < ranks; ++other) call.machine_of.push_back(other / 3);
  if (operation == Collective::neighbor_exchange)
    for (const int distance : {1, -1, 3, -3})
      call.neighbors.push_back({wrap(rank + distance, ranks), 5, 5, distance, -distance});
  return call;
}

std::uint64_t work_of(Collective operation, const Evaluation& found) {
  switch (operation) {
    case Collective::all_reduce:
    case Collective::reduce:
    case Collective::reduce_scatter: return found.worked;
    case Collective::gather:
    case Collective::scatter: return found.passed_on;
    default: return 0;
  }
}

TEST_P(EveryAlgorithm, TakesTheStepsMessagesAndElementsThatItsFormulaSays) {
  const CollectiveAlgorithm& row = GetParam();
  for (int ranks = 1; ranks <= most_ranks; ++ranks) {
    const CollectiveCall call = even_call(row.operation, 0, ranks);
    if (row.why_unavailable(call)) continue;
    std::vector<Schedule> schedules;
    for (int rank = 0; rank < ranks; ++rank) schedules.push_back(row.make(even_call(row.operation, rank, ranks)));
    std::vector<PlainArrays> no_data(schedules.size());
    for (std::size_t i = 0; i < schedules.size(); ++i) {
      no_data[i].output_at = schedules[i].input_count;
      no_data[i].scratch_at = no_data[i].output_at + schedules[i].output_count;
    }
    const Evaluation found = evaluate(schedules, no_data, {});
    ASSERT_EQ(found.wrong, "");
    const CollectiveCost said = row.cost(call);
    const bool bound = row.operation == Collective::all_reduce && row.name == "double_tree";
    EXPECT_LE(found.messages, said.messages) << ranks << " ranks";
    EXPECT_LE(said.messages, found.messages == 0 ? 0 : 2 * found.messages) << ranks << " ranks";
    if (!bound) {
      EXPECT_EQ(found.steps, said.steps) << ranks << " ranks";
      EXPECT_EQ(found.elements, said.elements) << ranks << " ranks";
      EXPECT_EQ(work_of(row.operation, found), said.worked) << ranks << " ranks";
    } else {
      EXPECT_LE(found.steps, said.steps) << ranks << " ranks";
      EXPECT_LE(found.elements, said.elements) << ranks << " ranks";
      EXPECT_GE(2 * found.elements, said.elements) << ranks << " ranks";
      EXPECT_LE(found.worked, said.worked) << ranks << " ranks";
    }
  }
}

TEST(Schedules, AllReduceGivesTheSameBitsAtEveryRankWhereTheOrderOfSumsMatters) {
  for (const CollectiveAlgorithm& row : algorithms()) {
    if (row.operation != Collective::all_reduce) continue;
    for (int ranks = 2; ranks <= most_ranks; ++ranks) {
      const EvaluationTerms terms{DataType::float32, ReduceOp::sum, 4 + 5ul * static_cast<std::uint64_t>(ranks), -1};
      const MadeUpCall made_up(row.operation, ranks, terms, false);
      if (row.why_unavailable(made_up.of(0))) continue;
      const std::vector<Schedule> schedules = schedules_of(row, made_up, ranks);
      std::mt19937_64 generator(terms.seed);
      std::vector<PlainArrays> arrays;
      for (const Schedule& schedule : schedules) {
        arrays.push_back(made_up.arrays(schedule));
        for (std::size_t i = 0; i < schedule.input_count; ++i) {
          const float value = std::ldexp(static_cast<float>(generator()), static_cast<int>(generator() % 40) - 60);
          std::memcpy(arrays.back().bytes.data() + 4 * i, &value, 4);
        }
      }
      ASSERT_EQ(evaluate(schedules, arrays, terms).wrong, "");
      for (std::size_t rank = 1; rank < arrays.size(); ++rank)
        ASSERT_EQ(std::memcmp(arrays[rank].bytes.data() + 4 * arrays[rank].output_at,
                              arrays[0].bytes.data() + 4 * arrays[0].output_at, 4 * schedules[0].output_count),
                  0)
            << full_name(row) << " " << ranks << " ranks";
    }
  }
}

TEST(Schedules, LeastAndGreatestAreTheSameBitsInEitherOrder) {
  const float values[] = {0.0F, -0.0F, 1.0F, NAN, -NAN, -INFINITY};
  for (const ReduceOp op : {ReduceOp::min, ReduceOp::max})
    for (const float a : values)
      for (const float b : values) {
        float ab = a, ba = b;
        reduce(DataType::float32, op, reinterpret_cast<std::byte*>(&ab), reinterpret_cast<const std::byte*>(&b), 1);
        reduce(DataType::float32, op, reinterpret_cast<std::byte*>(&ba), reinterpret_cast<const std::byte*>(&a), 1);
        EXPECT_EQ(std::memcmp(&ab, &ba, sizeof ab), 0) << name(op) << " of " << a << " and " << b;
      }
}

TEST(Schedules, NoRankPassesABarrierThatOneHasNotReached) {
  for (int ranks = 2; ranks <= most_ranks; ++ranks)
    for (int late = 0; late < ranks; ++late) {
      const EvaluationTerms terms{DataType::uint8, ReduceOp::sum, 1, late};
      const MadeUpCall made_up(Collective::barrier, ranks, terms, false);
      const auto schedules = schedules_of(find_algorithm(Collective::barrier, "dissemination"), made_up, ranks);
      std::vector<PlainArrays> arrays(schedules.size());
      const Evaluation evaluation = evaluate(schedules, arrays, terms);
      EXPECT_EQ(std::ranges::count(evaluation.finished, true), 0) << ranks << " ranks without " << late;
    }
}

TEST(Schedules, TheEvaluatorSeesConflictsWrongCountsAndDeadlocks) {
  Schedule send{"made up", 0, 2, 2, 2, 0, {{StepKind::send, 0, 1, {}, {Area::output, 0, 2}}}};
  Schedule receive{"made up", 1, 2, 2, 2, 0, {{StepKind::receive, 0, 0, {Area::output, 0, 2}, {}}}};
  const auto wrong = [](std::vector<Schedule> schedules) {
    std::vector<PlainArrays> arrays(schedules.size(), {0, 2, 4, {}});
    return evaluate(schedules, arrays, {}).wrong;
  };
  EXPECT_EQ(wrong({send, receive}), "");
  Schedule both = send;
  both.steps.push_back({StepKind::copy, 0, -1, {Area::output, 1, 1}, {Area::input, 1, 1}});
  EXPECT_EQ(wrong({both, receive}), "rank 0: steps of round 0 touch the same elements");
  Schedule shorter = receive;
  shorter.steps[0].destination.count = 1;
  EXPECT_EQ(wrong({send, shorter}), "rank 1: receives another count than is sent");
  Schedule outside = receive;
  outside.steps[0].destination.offset = 1;
  EXPECT_EQ(wrong({send, outside}), "rank 1: a block outside of its buffer");
  Schedule first_receives = send, then_receives = receive;
  first_receives.steps.insert(first_receives.steps.begin(), {StepKind::receive, 0, 1, {Area::output, 0, 2}, {}});
  first_receives.steps[1].round = 1;
  then_receives.steps.push_back({StepKind::send, 1, 0, {}, {Area::output, 0, 2}});
  EXPECT_EQ(wrong({first_receives, then_receives}), "rank 0: never ends: deadlock in round 0");
}

TEST(Schedules, TheDefaultChoiceGoesFromFewStepsToFewBytes) {
  CollectiveCall call = even_call(Collective::all_reduce, 0, 16);
  call.chunk = 0;
  call.machine_of.clear();
  const auto chosen = [&](std::size_t count) {
    call.count = count;
    return default_algorithm(call, 4).name;
  };
  EXPECT_EQ(chosen(1), "recursive_doubling");
  EXPECT_EQ(chosen(1 << 14), "halving_doubling");
  EXPECT_EQ(chosen(1 << 22), "two_shot");
  for (int operation = 0; operation < collectives; ++operation) {
    call.operation = static_cast<Collective>(operation);
    EXPECT_EQ(default_algorithm(call, 4).operation, call.operation);
  }
}

TEST(Schedules, TheDefaultChoiceKnowsThatAStepWithinAMachineIsShort) {
  const auto chosen = [](Collective operation, std::size_t count, bool one_machine) {
    CollectiveCall call = even_call(operation, 0, 16);
    call.chunk = 0;
    call.count = count;
    if (one_machine) call.machine_of.clear();
    return default_algorithm(call, 4).name;
  };
  EXPECT_EQ(chosen(Collective::all_reduce, 2, true), "recursive_doubling");
  EXPECT_EQ(chosen(Collective::reduce, 2, true), "binomial_tree");  // the root of the other one receives 15 messages
  EXPECT_EQ(chosen(Collective::reduce, 2, false), "direct");
  for (const Collective operation : {Collective::gather, Collective::scatter}) {
    EXPECT_EQ(chosen(operation, 2, true), "binomial_tree");
    EXPECT_EQ(chosen(operation, 1 << 18, true), "direct");  // the other one moves most blocks several times
    EXPECT_EQ(chosen(operation, 2, false), "direct");
  }
}

TEST(Schedules, AlgorithmsAreFoundByNameAndSayWhyTheyCannotServe) {
  CollectiveCall call = even_call(Collective::all_gather, 0, 6);
  EXPECT_EQ(find_algorithm(Collective::all_gather, "recursive_doubling").why_unavailable(call),
            "6 ranks are not a power of two");
  EXPECT_EQ(find_algorithm(Collective::all_reduce, "ring").why_unavailable(call), "ring is an algorithm of all_reduce");
  call.operation = Collective::all_reduce;
  call.machine_of.clear();
  EXPECT_EQ(find_algorithm(Collective::all_reduce, "hierarchical").why_unavailable(call),
            "all ranks are in one machine");
  EXPECT_THROW(find_algorithm(Collective::barrier, "ring"), Error);
  EXPECT_THROW(parse_collective("all_redoce"), Error);
  call.root = 6;
  EXPECT_THROW(find_algorithm(Collective::all_reduce, "ring").make(call), Error);
}

}  // namespace
}  // namespace waywiser
