// Collectives between symmetric arrays of virtual GPUs: compared with the same call on the host.
#include <gtest/gtest.h>

#include "tests/base/error_of.hpp"
#include "tests/comm/test_ranks.hpp"
#include "tests/group/compared_calls.hpp"

namespace waywiser {
namespace {

// Both arrays lie `before` elements from the beginning of a symmetric window.
void compare_symmetric(Group& group, Collective operation, DataType type, ReduceOp op, std::size_t count,
                       std::size_t before, Stream* stream) {
  const std::size_t given = count * blocks(operation, true, group.size());
  const std::size_t taken = count * blocks(operation, false, group.size());
  Twins in(group, type, before + given, group.rank(), 0);
  Twins out(group, type, before + taken, group.rank() + 1, 0);
  const Window first = group.expose(in.gpu_elements().region, true);
  const Window second = group.expose(out.gpu_elements().region, true);
  call(group, operation, op, in.gpu_elements().slice(before, given), out.gpu_elements().slice(before, taken), stream);
  if (stream != nullptr) group.synchronize(*stream);
  call(group, operation, op, in.host_elements().slice(before, given), out.host_elements().slice(before, taken),
       nullptr);
  require_that(in.equal() && out.equal(), std::string(name(operation)) + " of " + std::string(name(type)) + ", " +
                                              std::string(name(op)) + ", as on the host");
  group.barrier();
}

TEST(SymmetricArrays, EveryCollectiveAndType) {
  for (const int size : {2, 3}) {
    TestRanks ranks(size);
    ranks.virtual_gpus = size;
    EXPECT_EQ(ranks.in_processes([](Group& group) {
      group.set_algorithm("symmetric");
      const auto stream = group.platform()->open_stream(gpu_of_rank(group));
      each_long_call([&](Collective operation, DataType type, ReduceOp op, int turn) {
        constexpr std::size_t counts[] = {5, 30001, 4096};
        compare_symmetric(group, operation, type, op, counts[turn % 3], static_cast<std::size_t>(turn % 4),
                          turn % 2 == 0 ? stream.get() : nullptr);
      });
    }),
              no_problems)
        << size << " ranks";
  }
}

TEST(SymmetricArrays, InPlaceAndInTurnWithOtherWays) {
  TestRanks ranks(4);
  ranks.virtual_gpus = 4;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    const auto stream = group.platform()->open_stream(gpu_of_rank(group));
    Twins sum(group, DataType::int32, 200000, group.rank(), 0);
    Twins all(group, DataType::int32, 200000, group.rank() + 7, 0);
    const Window first = group.expose(sum.gpu_elements().region, true);
    const Window second = group.expose(all.gpu_elements().region, true);
    const std::size_t mine = static_cast<std::size_t>(group.rank()) * 50000;
    for (const char* way : {"symmetric", "two_shot", "symmetric", "one_shot", "symmetric"}) {
      group.set_algorithm(way);
      group.all_reduce(sum.gpu_elements(), sum.gpu_elements(), ReduceOp::sum, Mode::on(*stream));
      group.all_reduce(sum.host_elements(), sum.host_elements());
      if (std::string(way) == "two_shot") continue;
      group.all_gather(all.gpu_elements().slice(mine, 50000), all.gpu_elements());
      group.all_gather(all.host_elements().slice(mine, 50000), all.host_elements());
    }
    group.synchronize(*stream);
    require_that(sum.equal(), "sums in place" + sum.difference());
    require_that(all.equal(), "all_gather in place" + all.difference());
    group.barrier();
  }),
            no_problems);
}

// That the offsets are looked at shows that long arrays take this way by default.
TEST(SymmetricArrays, ABrokenPromiseFailsAtAllRanksAndLongArraysTakeThisWay) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  const auto problems = ranks.in_processes([](Group& group) {
    constexpr std::size_t count = 17 << 20;
    Twins out(group, DataType::uint8, 3 * count, 0, 0);
    Twins in(group, DataType::uint8, count, 0, 0);
    const Window window = group.expose(out.gpu_elements().region, true);
    group.all_gather(in.gpu_elements(), out.gpu_elements().slice(0, 2 * count));
    const std::size_t offset = group.rank() == 0 ? 16 : 32;
    group.all_gather(in.gpu_elements(), out.gpu_elements().slice(offset, 2 * count));
  });
  for (const std::string& problem : problems)  // in the words of the rank that is first to see it
    EXPECT_NE(problem.find("arrays lie at other offsets of their symmetric windows than those of rank "),
              std::string::npos)
        << problem;
  EXPECT_EQ(problems.size(), 2u);
}

TEST(SymmetricArrays, ARankWhoseArraysLieInNoWindowIsNamed) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  const auto problems = ranks.in_processes([](Group& group) {
    constexpr std::size_t count = 1000;
    Twins in(group, DataType::uint8, count, 0, 0), out(group, DataType::uint8, 2 * count, 0, 0);
    Twins other(group, DataType::uint8, 2 * count, 0, 0);
    const Window window = group.expose(out.gpu_elements().region, true);
    group.set_algorithm(group.rank() == 0 ? "symmetric" : "one_shot");
    group.all_gather(in.gpu_elements(), (group.rank() == 0 ? out : other).gpu_elements());
  });
  for (const char* words : {"rank 0 is in all_gather", "rank 1 is in all_gather", "between symmetric arrays"})
    EXPECT_NE(problems.at(0).find(words), std::string::npos) << problems.at(0);
}

TEST(SymmetricArrays, WindowsThatAreNotAlikeAreRefusedAtAllRanks) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    Twins array(group, DataType::int32, 100, 0, 0);
    const auto whole = array.gpu_elements().region;
    const std::string unequal = error_of([&] { group.expose(group.rank() == 0 ? whole : whole.slice(0, 80), true); });
    require_that(unequal == "expose: symmetric windows are equally long: rank 0 exposes 400 bytes, rank 1 80", unequal);
    const std::string only_one = error_of([&] { group.expose(whole, group.rank() == 1); });
    require_that(only_one == "expose: symmetric is for all ranks: only one of rank 0 and rank 1 has given it",
                 only_one);
    const std::string odd = error_of([&] { group.expose(whole.slice(8, 80), true); });
    require_that(odd == "expose: a symmetric window begins at a multiple of 16 bytes at all ranks", odd);
    group.set_algorithm("symmetric");
    const std::string why = error_of([&] { group.all_reduce(array.gpu_elements(), array.gpu_elements()); });
    require_that(why.ends_with("by symmetric: the input is in no symmetric window"), why);
    const Window window = group.expose(whole, true);
    const std::string reduce =
        error_of([&] { group.reduce(array.gpu_elements(), array.gpu_elements(), ReduceOp::sum, 0); });
    require_that(reduce.ends_with("by symmetric: there is no reduce between symmetric arrays"), reduce);
    group.barrier();
  }),
            no_problems);
}

}  // namespace
}  // namespace waywiser
