// Messages on streams by copy engines, between virtual GPUs.
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "tests/comm/test_ranks.hpp"
#include "tests/group/compared_calls.hpp"

namespace waywiser {
namespace {

TEST(CopiedMessages, RoundTheRingAndWithOtherWaysInTurn) {
  for (const int size : {2, 3}) {
    TestRanks ranks(size);
    ranks.virtual_gpus = size;
    EXPECT_EQ(ranks.in_processes([](Group& group) {
      for (const char* way : {"copy_engine", "copy_engine(pieces=7)", "bulk", "copy_engine(pieces=2)", "LL"}) {
        group.set_algorithm(way);
        for (const std::size_t count : {1, 5001, 1500001}) exchange_on_stream(group, count, 3);
      }
    }),
              no_problems)
        << size << " ranks";
  }
}

TEST(CopiedMessages, BlocksOfAllSizesAndNeighbours) {
  for (const int size : {2, 4}) {
    TestRanks ranks(size);
    ranks.virtual_gpus = size;
    EXPECT_EQ(ranks.in_processes([](Group& group) {
      group.set_algorithm("copy_engine(pieces=3)");
      blocks_of_all_sizes(group);
      for (const std::size_t count : {1, 70001}) exchange_with_neighbors(group, count);
    }),
              no_problems)
        << size << " ranks";
  }
}

// What one rank does at once the other does in turn, one direction after the other.
TEST(CopiedMessages, BothWaysMatchEachWay) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    group.set_algorithm("copy_engine(pieces=6)");
    const auto stream = group.platform()->open_stream(gpu_of_rank(group));
    const int other = 1 - group.rank();
    for (const std::size_t count : {3, 200001}) {
      Twins give(group, DataType::int32, count, group.rank()), take(group, DataType::int32, count, 7);
      if (group.rank() == 0) {
        group.sendrecv(give.gpu_elements(), other, take.gpu_elements(), other, 0, Mode::on(*stream));
      } else {
        group.send(give.gpu_elements(), other, 0, Mode::on(*stream));
        group.recv(take.gpu_elements(), other, 0, Mode::on(*stream));
      }
      group.synchronize(*stream);
      group.sendrecv(give.host_elements(), other, take.host_elements(), other);
      require_that(give.equal() && take.equal(), "both ways" + take.difference());
    }
  }),
            no_problems);
}

TEST(CopiedMessages, AreTheDefaultOfLongArrays) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([](Group& group) { exchange_on_stream(group, (17 << 20) + 5, 1); }), no_problems);
}

std::string problems_of(Seconds patience, const std::function<void(Group&, Stream&)>& second) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  const auto problems = ranks.in_processes([&](Group& group) {
    group.set_algorithm("copy_engine(pieces=4)");
    exchange_on_stream(group, 1000, 1);
    const auto stream = group.platform()->open_stream(gpu_of_rank(group));
    group.set_timeout(group.rank() == 0 ? patience : 20);
    if (group.rank() == 1) return second(group, *stream);
    Twins give(group, DataType::int32, 100000, 0);
    group.send(give.gpu_elements(), 1, 0, Mode::on(*stream));
    group.synchronize(*stream);
  });
  return problems.at(0) + problems.at(1);
}

TEST(CopiedMessages, ARankThatDoesNotComeIsNamed) {
  const std::string why = problems_of(1, [](Group& group, Stream&) { group.recv(std::span<int>(), 0); });
  EXPECT_NE(why.find("rank 1 did not send within 1.00 s"), std::string::npos) << why;
}

TEST(CopiedMessages, DifferingMessagesAreNamed) {
  for (const char* way : {"copy_engine(pieces=4)", "bulk"}) {
    const std::string why = problems_of(20, [&](Group& group, Stream& stream) {
      group.set_algorithm(way);
      Twins take(group, DataType::int32, 70000, 0);
      group.recv(take.gpu_elements(), 0, 0, Mode::on(stream));
      group.synchronize(stream);
    });
    EXPECT_NE(why.find("100000 int32"), std::string::npos) << way << ": " << why;
    EXPECT_NE(why.find("70000 int32"), std::string::npos) << way << ": " << why;
    EXPECT_EQ(why.find("did not send within"), std::string::npos) << way << ": " << why;
  }
}

}  // namespace
}  // namespace waywiser
