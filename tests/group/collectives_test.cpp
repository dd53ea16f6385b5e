// The collectives of a Group between processes, beside what they must give.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "tests/comm/test_ranks.hpp"
#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

using Numbers = std::vector<std::int64_t>;

Numbers made_by(int rank, std::size_t count) {
  Numbers values(count);
  std::iota(values.begin(), values.end(), std::int64_t{1'000'000} * (rank + 1));
  return values;
}

Numbers sum_of_all(int ranks, std::size_t count) {
  Numbers sum(count);
  for (int rank = 0; rank < ranks; ++rank) {
    const Numbers values = made_by(rank, count);
    for (std::size_t i = 0; i < count; ++i) sum[i] += values[i];
  }
  return sum;
}

// The blocks of all ranks one after the other; block r is made by rank r.
Numbers blocks_of_all(int ranks, std::size_t count) {
  Numbers all;
  for (int rank = 0; rank < ranks; ++rank) {
    const Numbers block = made_by(rank, count);
    all.insert(all.end(), block.begin(), block.end());
  }
  return all;
}

Numbers part(const Numbers& all, int rank, std::size_t count) {
  const auto first = all.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(rank) * count);
  return {first, first + static_cast<std::ptrdiff_t>(count)};
}

void reductions(Group& group, std::size_t count) {
  const Numbers sum = sum_of_all(group.size(), count);
  Numbers mine = made_by(group.rank(), count), out(count);
  group.all_reduce(std::span(mine), std::span(out));
  require_that(out == sum, "all_reduce");
  group.all_reduce(std::span(mine), std::span(out), ReduceOp::max);
  require_that(out == made_by(group.size() - 1, count), "all_reduce of the largest");
  for (int root = 0; root < group.size(); ++root) {
    Numbers at_root(group.rank() == root ? count : 0);
    group.reduce(std::span(mine), std::span(at_root), ReduceOp::sum, root);
    if (group.rank() == root) require_that(at_root == sum, "reduce");
  }
}

// All begin at once; the waits come in another order.
void futures(Group& group, std::size_t count) {
  const int ranks = group.size(), root = ranks - 1;
  const Numbers all = blocks_of_all(ranks, count), sum = sum_of_all(ranks, count);
  const Numbers mine = made_by(group.rank(), count), nothing;
  Numbers in_place = mine, gathered(all.size()), summed(count), told = group.rank() == 0 ? all : Numbers(all.size());
  Numbers exchanged(all.size()), at_root(group.rank() == root ? all.size() : 0), block(count);
  Numbers reduced(group.rank() == root ? count : 0);
  std::vector<Future> begun;
  begun.push_back(group.all_reduce(std::span(in_place), std::span(in_place), ReduceOp::sum, Mode::begin));
  begun.push_back(group.all_gather(std::span(mine), std::span(gathered), Mode::begin));
  begun.push_back(group.reduce_scatter(std::span(all), std::span(summed), ReduceOp::sum, Mode::begin));
  begun.push_back(group.broadcast(std::span(told), 0, Mode::begin));
  begun.push_back(group.all_to_all(std::span(all), std::span(exchanged), Mode::begin));
  begun.push_back(group.gather(std::span(mine), std::span(at_root), root, Mode::begin));
  begun.push_back(group.scatter(std::span(group.rank() == root ? all : nothing), std::span(block), root, Mode::begin));
  begun.push_back(group.reduce(std::span(mine), std::span(reduced), ReduceOp::sum, root, Mode::begin));
  begun.push_back(group.barrier(Mode::begin));
  for (auto each = begun.rbegin(); each != begun.rend(); ++each) each->wait();
  require_that(in_place == sum && gathered == all && told == all, "what all have");
  require_that(block == mine && exchanged.size() == all.size(), "what rank r has");
  for (std::size_t i = 0; i < count; ++i) require_that(summed[i] == ranks * mine[i], "reduce_scatter that was begun");
  for (int rank = 0; rank < ranks; ++rank)
    require_that(part(exchanged, rank, count) == mine, "all_to_all that was begun");
  if (group.rank() == root) require_that(at_root == all && reduced == sum, "what the root has");
  if (count != 0) {
    EXPECT_THROW(static_cast<void>(group.all_to_all(std::span(told), std::span(told), Mode::begin)), Error);
    group.all_reduce(std::span(mine), std::span(in_place));  // waits again
    require_that(in_place == sum, "all_reduce after a call that did not begin");
  }
}

void distributions(Group& group, std::size_t count) {
  const int ranks = group.size();
  const Numbers all = blocks_of_all(ranks, count), mine = made_by(group.rank(), count);
  Numbers gathered(all.size()), block(count);
  group.all_gather(std::span(mine), std::span(gathered));
  require_that(gathered == all, "all_gather");
  const int root = ranks - 1;
  std::ranges::fill(gathered, 0);
  group.gather(std::span(mine), std::span(gathered), root);
  if (group.rank() == root) require_that(gathered == all, "gather");
  const Numbers none_here;
  group.scatter(std::span(group.rank() == root ? all : none_here), std::span(block), root);
  require_that(block == mine, "scatter");
  Numbers told = group.rank() == 0 ? all : Numbers(all.size());
  group.broadcast(std::span(told), 0);
  require_that(told == all, "broadcast");
  Numbers summed(count);
  group.reduce_scatter(std::span(all), std::span(summed));
  for (std::size_t i = 0; i < count; ++i) require_that(summed[i] == ranks * mine[i], "reduce_scatter");
}

void exchanges(Group& group, std::size_t count) {
  const int ranks = group.size();
  Numbers out(static_cast<std::size_t>(ranks) * count), expected;
  const Numbers all = blocks_of_all(ranks, count);
  for (int rank = 0; rank < ranks; ++rank) {
    const Numbers block = part(all, group.rank(), count);
    expected.insert(expected.end(), block.begin(), block.end());
  }
  group.all_to_all(std::span(all), std::span(out));
  require_that(out == expected, "all_to_all");
  Numbers in_place = all;
  group.all_to_all(std::span(in_place), std::span(in_place));
  require_that(in_place == expected, "all_to_all in place");
}

// Rank r has r blocks: rank 0 has nothing.
void unequal_parts(Group& group, std::size_t count) {
  std::vector<std::size_t> counts;
  Numbers all;
  for (int rank = 0; rank < group.size(); ++rank) {
    counts.push_back(static_cast<std::size_t>(rank) * count);
    const Numbers block = made_by(rank, counts.back());
    all.insert(all.end(), block.begin(), block.end());
  }
  const Numbers mine = made_by(group.rank(), counts[static_cast<std::size_t>(group.rank())]);
  Numbers gathered(all.size()), block(mine.size());
  group.all_gather_v(std::span(mine), std::span(gathered), counts);
  require_that(gathered == all, "all_gather_v");
  std::ranges::fill(gathered, 0);
  group.gather_v(std::span(mine), std::span(gathered), counts, 0);
  if (group.rank() == 0) require_that(gathered == all, "gather_v");
  group.scatter_v(std::span(gathered), counts, std::span(block), 0);
  require_that(block == mine, "scatter_v");
  // To rank r go r blocks; so from each come as many as this rank's number says.
  const std::vector<std::size_t> take(counts.size(), mine.size());
  Numbers taken(mine.size() * counts.size());
  group.all_to_all_v(std::span(all), counts, std::span(taken), take);
  for (int rank = 0; rank < group.size(); ++rank) require_that(part(taken, rank, mine.size()) == mine, "all_to_all_v");
}

void every_collective(Group& group) {
  group.barrier();
  for (const std::size_t count : {0, 1, 1000, 30000}) {
    reductions(group, count);
    distributions(group, count);
    exchanges(group, count);
    futures(group, count);
    unequal_parts(group, count);
  }
  group.barrier();
}

class GroupCollectives : public testing::TestWithParam<int> {};
TEST_P(GroupCollectives, GiveWhatTheyMust) {
  EXPECT_EQ(TestRanks(GetParam()).in_processes(every_collective), no_problems);
}
INSTANTIATE_TEST_SUITE_P(Ranks, GroupCollectives, testing::Values(1, 2, 3, 8));

TEST(GroupCollectives, InGroupsThatASplitMade) {
  EXPECT_EQ(TestRanks(4).in_processes([](Group& group) {
    std::optional<Group> pair = group.split(group.rank() / 2);
    const auto mine = static_cast<float>(group.rank());
    float sum = 0;
    pair->all_reduce(std::span(&mine, 1), std::span(&sum, 1));
    require_that(static_cast<int>(sum) == (group.rank() < 2 ? 1 : 5), "the sum within the pair");
    group.all_reduce(std::span(&mine, 1), std::span(&sum, 1));
    require_that(static_cast<int>(sum) == 6, "and of all");
  }),
            no_problems);
}

TEST(GroupCollectives, UnlikeCallsAreNamed) {
  using Call = std::function<void(Group&, std::span<float>)>;
  struct Unlike {
    Call ours, other;
    std::string words, theirs;
  };
  const Call sum = [](Group& group, std::span<float> x) { group.all_reduce(x, x); };
  const Unlike unlike[] = {
      {sum, [](Group& group, std::span<float> x) { group.all_reduce(x.first(80), x.first(80)); }, "320 bytes",
       "80 float32"},
      {sum, [](Group& group, std::span<float> x) { group.all_reduce(x, x, ReduceOp::max); },
       "all_reduce of float32, max", "100 float32, max"},
      {sum, [](Group& group, std::span<float> x) { group.broadcast(x, 0); }, "broadcast of float32", "broadcast #1"},
      {[](Group& group, std::span<float> x) { group.broadcast(x, 2); },
       [](Group& group, std::span<float> x) { group.broadcast(x, 0); }, "root 0", "root 0"},
  };
  for (const Unlike& each : unlike) {
    const auto problems = TestRanks(3).in_processes([&](Group& group) {
      std::vector<float> data(100);
      (group.rank() == 1 ? each.other : each.ours)(group, data);
      group.barrier();
    });
    ASSERT_EQ(problems.size(), 3u);
    for (const std::string& problem : problems)
      EXPECT_TRUE(problem.find(each.words) != std::string::npos || problem.find(each.theirs) != std::string::npos)
          << problem;
  }
}

TEST(GroupCollectives, WrongArraysAreRefusedBeforeAnythingIsSent) {
  EXPECT_EQ(TestRanks(1).in_threads([](Group& group) {
    std::vector<float> three(3), four(4);
    std::vector<double> doubles(3);
    const std::size_t two_counts[] = {1, 2};
    EXPECT_THROW(group.all_reduce(std::span(three), std::span(four)), Error);
    EXPECT_THROW(group.all_reduce(std::span(three), std::span(doubles)), Error);
    EXPECT_THROW(group.all_gather_v(std::span(three), std::span(three), two_counts), Error);
    EXPECT_THROW(group.broadcast(std::span(three), 1), Error);
    group.all_reduce(std::span(three), std::span(three));
  }),
            no_problems);
}

// A call that is refused at one rank does not count: its next call matches that of the others.
TEST(GroupCollectives, RanksAreInStepAfterACallThatOneWasRefused) {
  TestRanks ranks(2);
  ranks.timeout = 20;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    std::vector<std::int64_t> values(6, group.rank() + 1);
    const std::span<std::int64_t> all(values);
    const auto refused = [&](const auto& call) {
      if (group.rank() != 0) return;
      try {
        call();
      } catch (const Error& error) {
        return require_that(error.kind() == ErrorKind::invalid_input, error.what());
      }
      require_that(false, "a refusal");
    };
    refused([&] {
      static_cast<void>(group.all_to_all(std::span<const std::int64_t>(all.first(4)), all.subspan(2), Mode::begin));
    });
    group.barrier();
    std::vector<std::int64_t> sum(6);
    group.all_reduce(std::span<const std::int64_t>(all), std::span(sum));
    require_that(sum == std::vector<std::int64_t>(6, 3), "the sum");
  }),
            no_problems);
}

TEST(GroupCollectives, AWayOfTheNameThatGpusHaveTooIsTheAlgorithmOnTheHost) {
  TestRanks ranks(2);
  ranks.timeout = 30;
  const std::vector<std::string> problems = ranks.in_processes([](Group& group) {
    group.set_algorithm("two_shot");
    const Numbers values = made_by(group.rank(), 4);
    Numbers sum(4);
    group.all_reduce(std::span<const std::int64_t>(values), std::span(sum));
    require_that(sum == sum_of_all(2, 4), "the sum");
    if (group.rank() == 1) {
      group.recv(std::as_writable_bytes(std::span(sum)), 0);  // not the second one
      return;
    }
    group.set_timeout(0.2);
    group.all_reduce(std::span<const std::int64_t>(values), std::span(sum));
  });
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_NE((problems[0] + problems[1]).find("(two_shot)"), std::string::npos) << problems[0] << problems[1];
}

}  // namespace
}  // namespace waywiser
