// Collectives that a program makes over and over: from the third one on, lanes carry short ones.
#include <gtest/gtest.h>

#include <csignal>
#include <numeric>

#include "tests/comm/faults.hpp"
#include "tests/comm/test_ranks.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/group/scans.hpp"

namespace waywiser {
namespace {

using Numbers = std::vector<std::int64_t>;
constexpr int repeated_turns = 5;

Numbers given_by(int rank, std::size_t count, int turn) {
  Numbers values(count);
  std::iota(values.begin(), values.end(), std::int64_t{1'000'000} * (rank + 1) + 1000 * turn);
  return values;
}

Numbers sum_given(int ranks, std::size_t count, int turn) {
  Numbers sum(count);
  for (int rank = 0; rank < ranks; ++rank) {
    const Numbers values = given_by(rank, count, turn);
    for (std::size_t i = 0; i < count; ++i) sum[i] += values[i];
  }
  return sum;
}

Numbers blocks_given(int ranks, std::size_t count, int turn) {
  Numbers all;
  for (int rank = 0; rank < ranks; ++rank) {
    const Numbers own = given_by(rank, count, turn);
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

void call_every_collective(Group& group, std::size_t count, int turn) {
  const int ranks = group.size(), rank = group.rank(), root = turn % ranks;
  const std::size_t all_count = count * static_cast<std::size_t>(ranks);
  const Numbers mine = given_by(rank, count, turn), sum = sum_given(ranks, count, turn);
  const Numbers all = blocks_given(ranks, count, turn), nothing;
  group.barrier();
  Numbers out(count), in_place = mine;
  group.all_reduce(std::span(mine), std::span(out));
  group.all_reduce(std::span(in_place), std::span(in_place));
  require_that(out == sum && in_place == sum, "all_reduce");
  group.all_reduce(std::span(mine), std::span(out), ReduceOp::max);
  require_that(out == given_by(ranks - 1, count, turn), "all_reduce of the largest");
  Numbers told = rank == root ? mine : Numbers(count);
  group.broadcast(std::span(told), root);
  require_that(told == given_by(root, count, turn), "broadcast");
  Numbers reduced(rank == root ? count : 0);
  group.reduce(std::span(mine), std::span(reduced), ReduceOp::sum, root);
  require_that(rank != root || reduced == sum, "reduce");
  Numbers gathered(all_count), at_root(rank == root ? all_count : 0), own(count), exchanged(all_count);
  group.all_gather(std::span(mine), std::span(gathered));
  group.gather(std::span(mine), std::span(at_root), root);
  require_that(gathered == all && (rank != root || at_root == all), "gathers");
  group.scatter(std::span(rank == root ? all : nothing), std::span(own), root);
  require_that(own == mine, "scatter");
  group.reduce_scatter(std::span(all), std::span(own));
  for (std::size_t i = 0; i < count; ++i) require_that(own[i] == ranks * mine[i], "reduce_scatter");
  group.all_to_all(std::span(all), std::span(exchanged));
  for (int from = 0; from < ranks; ++from)
    for (std::size_t i = 0; i < count; ++i)
      require_that(exchanged[static_cast<std::size_t>(from) * count + i] == mine[i], "all_to_all");
  scan(group, std::span(mine), std::span(out));
  require_that(out == sum_given(rank + 1, count, turn), "scan");
}

TEST(RepeatedCalls, GiveTheSameAsTheFirst) {
  for (const int ranks : {1, 2, 3, 5})
    EXPECT_EQ(TestRanks(ranks).in_processes([](Group& group) {
      for (const std::size_t count : {0, 1, 3, 128, 1024, 3000})
        for (int turn = 0; turn < repeated_turns; ++turn) call_every_collective(group, count, turn);
    }),
              no_problems);
}

TEST(RepeatedCalls, OfEachGroupAndOfEachAlgorithm) {
  EXPECT_EQ(TestRanks(4).in_processes([](Group& group) {
    std::optional<Group> part = group.split(group.rank() % 2);
    for (int turn = 0; turn < repeated_turns; ++turn) {
      call_every_collective(*part, 5, turn);
      call_every_collective(group, 5, turn);
    }
    Numbers out(5);
    for (const char* algorithm : {"one_shot", "recursive_doubling", "ring", "two_shot", ""}) {
      group.set_algorithm(algorithm);
      for (int turn = 0; turn < repeated_turns; ++turn) {
        const Numbers mine = given_by(group.rank(), 5, turn);
        group.all_reduce(std::span(mine), std::span(out));
        require_that(out == sum_given(4, 5, turn), algorithm);
      }
    }
  }),
            no_problems);
}

// An error of the arguments takes no number, and overlapping arrays are refused however often they were apart.
TEST(RepeatedCalls, AreCheckedAsTheFirst) {
  EXPECT_EQ(TestRanks(2).in_processes([](Group& group) {
    Numbers both(5), out(4);
    const auto left = std::span(both).first(4), right = std::span(both).last(4);
    for (int turn = 0; turn < repeated_turns; ++turn) {
      std::ranges::fill(both, turn);
      group.all_reduce(left, std::span(out));
      require_that(out == Numbers(4, 2 * turn), "all_reduce");
      EXPECT_THROW(group.all_reduce(left, right), Error);
      if (group.rank() == 0) {
        EXPECT_THROW(group.all_reduce(left, std::span(out).first(3)), Error);
      } else {
        EXPECT_THROW(group.broadcast(left, 2), Error);
      }
    }
  }),
            no_problems);
}

TEST(RepeatedCalls, UnlikeOnesAreNamed) {
  const auto problems = TestRanks(2).in_processes([](Group& group) {
    std::vector<float> data(4);
    for (int turn = 0; turn < repeated_turns; ++turn) {
      group.all_reduce(std::span(data), std::span(data));
      group.broadcast(std::span(data), 0);
    }
    if (group.rank() == 0)
      group.all_reduce(std::span(data), std::span(data));
    else
      group.broadcast(std::span(data), 0);
    group.barrier();
  });
  EXPECT_EQ(problems.size(), 2U);
  for (const std::string& problem : problems)
    EXPECT_TRUE(holds(problem, "broadcast") && holds(problem, "all_reduce of float32")) << problem;
}

// Faults: host D
TEST(RepeatedCalls, ARankThatIsKilledIsAnErrorAtTheOthers) {
  for (const bool of_barriers : {false, true}) {
    const auto problems = TestRanks(3).in_processes([&](Group& group) {
      double sum = 1;
      for (int turn = 0;; ++turn) {
        if (group.rank() == 1 && turn == 20) ::raise(SIGKILL);
        if (of_barriers)
          group.barrier();
        else
          group.all_reduce(std::span(&sum, 1), std::span(&sum, 1), ReduceOp::max);
      }
    });
    for (const std::string& problem : problems)
      EXPECT_TRUE(holds(problem, "signal 9") || holds(problem, "rank 1 (process ")) << problem;
    EXPECT_EQ(problems.size(), 3U);
  }
}

}  // namespace
}  // namespace waywiser
