// Collectives by copy engines, on virtual GPUs: compared with the same call on the host.
#include <gtest/gtest.h>

#include "tests/base/error_of.hpp"
#include "tests/comm/test_ranks.hpp"
#include "tests/group/compared_calls.hpp"
#include "tests/policy/made_up_rows.hpp"
#include "waywiser/collective/call.hpp"
#include "waywiser/policy/chooser.hpp"

namespace waywiser {
namespace {

TEST(CopyEngine, EveryCollectiveAndType) {
  for (const int size : {2, 3}) {
    TestRanks ranks(size);
    ranks.virtual_gpus = size;
    EXPECT_EQ(ranks.in_processes([](Group& group) {
      const auto stream = group.platform()->open_stream(gpu_of_rank(group));
      each_long_call([&](Collective operation, DataType type, ReduceOp op, int turn) {
        group.set_algorithm(turn % 3 == 0 ? "copy_engine" : "copy_engine(pieces=3)");
        constexpr std::size_t counts[] = {5, 30001, 4096};
        compare(group, operation, type, op, counts[turn % 3], turn % 2 == 0 ? stream.get() : nullptr);
      });
    }),
              no_problems)
        << size << " ranks";
  }
}

TEST(CopyEngine, PiecesInTurnWithOtherWaysAndInPlace) {
  for (const int size : {2, 4}) {
    TestRanks ranks(size);
    ranks.virtual_gpus = size;
    EXPECT_EQ(ranks.in_processes([](Group& group) {
      const auto first = group.platform()->open_stream(gpu_of_rank(group));
      const auto second = group.platform()->open_stream(gpu_of_rank(group));
      for (const std::size_t count : {std::size_t{300001}, std::size_t{3} << 20})
        for (const Collective operation : long_operations) {
          group.set_algorithm("copy_engine(pieces=9)");
          compare(group, operation, DataType::float32, ReduceOp::sum, count / static_cast<std::size_t>(group.size()),
                  first.get());
        }
      Twins sum(group, DataType::int32, 200000, group.rank());
      for (const char* way : {"copy_engine(pieces=7)", "two_shot", "copy_engine", "LL128", "copy_engine(pieces=5)"}) {
        group.set_algorithm(way);
        for (Stream* stream : {first.get(), second.get()}) {
          group.all_reduce(sum.gpu_elements(), sum.gpu_elements(), ReduceOp::sum, Mode::on(*stream));
          group.all_reduce(sum.host_elements(), sum.host_elements());
        }
      }
      group.synchronize(*second);
      require_that(sum.equal(), "sums in place, one after the other" + sum.difference());
      group.set_algorithm("copy_engine(pieces=6)");
      Twins all(group, DataType::int32, 50000 * static_cast<std::size_t>(group.size()), group.rank());
      const std::size_t mine = static_cast<std::size_t>(group.rank()) * 50000;
      group.all_gather(all.gpu_elements().slice(mine, 50000), all.gpu_elements());
      group.all_gather(all.host_elements().slice(mine, 50000), all.host_elements());
      require_that(all.equal(), "all_gather in place" + all.difference());
    }),
              no_problems)
        << size << " ranks";
  }
}

TEST(CopyEngine, IsTheDefaultOfLongArrays) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    const Bytes before = group.platform()->allocated_memory(group.rank());
    compare(group, Collective::all_gather, DataType::float32, ReduceOp::sum, (5 << 20) + 3, nullptr);
    const Bytes after = group.platform()->allocated_memory(group.rank());
    require_that(after - before >= (Bytes{32} << 20), "memory for pieces, once and for all");
    compare(group, Collective::all_reduce, DataType::float32, ReduceOp::sum, (9 << 20) + 1, nullptr);
  }),
            no_problems);
}

TEST(CopyEngine, SaysWhyNot) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    group.set_algorithm("copy_engine");
    Twins sum(group, DataType::int32, 10, 0);
    const std::string why = error_of([&] { group.reduce(sum.gpu_elements(), sum.gpu_elements(), ReduceOp::sum, 0); });
    require_that(why == "reduce #4 of 10 int32, sum, root 0 by copy_engine: copy engines do no reduce", why);
  }),
            no_problems);
  TestRanks alone(1);
  alone.virtual_gpus = 1;
  EXPECT_EQ(alone.in_processes([](Group& group) {
    group.set_algorithm("copy_engine");
    Twins sum(group, DataType::int32, 10, 0);
    const std::string why = error_of([&] { group.all_reduce(sum.gpu_elements(), sum.gpu_elements()); });
    require_that(why.find("by copy_engine: it is for several ranks") != std::string::npos, why);
  }),
            no_problems);
}

TEST(CopyEngine, UnlikeCallsAreNamedAndARankThatDoesNotComeToo) {
  const auto problems_of = [](const std::function<void(Group&)>& second) {
    TestRanks ranks(2);
    ranks.virtual_gpus = 2;
    const auto problems = ranks.in_processes([&](Group& group) {
      group.set_algorithm("copy_engine(pieces=4)");
      Twins sum(group, DataType::int32, 100000, 0);
      group.all_reduce(sum.gpu_elements(), sum.gpu_elements());
      group.set_timeout(group.rank() == 0 ? 1 : 20);
      if (group.rank() == 0) group.all_reduce(sum.gpu_elements(), sum.gpu_elements());
      if (group.rank() == 1) second(group);
    });
    return problems.at(0) + problems.at(1);
  };
  EXPECT_NE(
      problems_of([](Group& group) { group.recv(std::span<int>(), 0); }).find("rank 1 did not send within 1.00 s"),
      std::string::npos);
  const std::string unlike = problems_of([](Group& group) {
    Twins other(group, DataType::int32, 70000, 0);
    group.all_reduce(other.gpu_elements(), other.gpu_elements());
  });
  EXPECT_NE(unlike.find("of 100000 int32, sum"), std::string::npos) << unlike;
  EXPECT_NE(unlike.find("of 70000 int32, sum"), std::string::npos) << unlike;
}

TEST(CopyEngine, ThePlanMayNameIt) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  ranks.chooser_of = [&](int) {
    Plan plan;
    plan.rows = {made_up::group_row("all_reduce", "gpu", 2, 0, 1 << 20, "copy_engine(pieces=2)")};
    return std::make_shared<const Chooser>(std::move(plan));
  };
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    const Bytes before = group.platform()->allocated_memory(group.rank());
    compare(group, Collective::all_reduce, DataType::float32, ReduceOp::sum, 5000, nullptr);
    require_that(group.platform()->allocated_memory(group.rank()) - before >= (Bytes{32} << 20), "its memory");
  }),
            no_problems);
}

}  // namespace
}  // namespace waywiser
