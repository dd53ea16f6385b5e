// Every type of element in the collectives of a Group.
#include <gtest/gtest.h>

#include <complex>
#include <cstring>

#include "tests/base/error_of.hpp"
#include "tests/comm/test_ranks.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/kernels/block/float8.hpp"
#include "waywiser/kernels/block/half.hpp"

namespace waywiser {
namespace {

template <typename T>
void sum_and_average(Group& group, T one, T sum, T average) {
  const std::vector<T> ones(33, one);
  std::vector<T> out(33);
  group.all_reduce(std::span(ones), std::span(out));
  require_that(std::memcmp(&out[32], &sum, sizeof sum) == 0, "the sum of " + std::string(name(DataTypeOf<T>::value)));
  group.all_reduce(std::span(ones), std::span(out), ReduceOp::avg);
  require_that(std::memcmp(&out[32], &average, sizeof average) == 0, "the average");
}

TEST(GroupCollectives, AllTypes) {
  EXPECT_EQ(TestRanks(3).in_processes([](Group& group) {
    sum_and_average<double>(group, 1, 3, 1);
    sum_and_average<float>(group, 1, 3, 1);
    sum_and_average<Float16>(group, to_float16(1), to_float16(3), to_float16(1));
    sum_and_average<Bfloat16>(group, to_bfloat16(1), to_bfloat16(3), to_bfloat16(1));
    sum_and_average<std::int8_t>(group, -1, -3, -1);
    sum_and_average<std::int16_t>(group, 2, 6, 2);
    sum_and_average<std::int32_t>(group, 1, 3, 1);
    sum_and_average<std::int64_t>(group, 1, 3, 1);
    sum_and_average<std::uint8_t>(group, 100, 44, 14);  // the sum wraps
    sum_and_average<std::uint16_t>(group, 30000, 24464, 8154);
    sum_and_average<std::uint32_t>(group, 1u << 31, 1u << 31, (1u << 31) / 3);
    sum_and_average<std::uint64_t>(group, std::uint64_t{5} << 60, std::uint64_t{15} << 60, std::uint64_t{5} << 60);
    sum_and_average<std::complex<float>>(group, {1, -2}, {3, -6}, {1, -2});
    sum_and_average<std::complex<double>>(group, {1, -2}, {3, -6}, {1, -2});
    sum_and_average<Float8E4m3>(group, to_float8_e4m3fn(1.5f), to_float8_e4m3fn(4.5f), to_float8_e4m3fn(1.5f));
    sum_and_average<Float8E5m2>(group, to_float8_e5m2(2), to_float8_e5m2(6), to_float8_e5m2(2));
  }),
            no_problems);
}

// A refused call does not count: the next one matches that of the others.
TEST(GroupCollectives, ComplexNumbersHaveNoOrder) {
  EXPECT_EQ(TestRanks(2).in_processes([](Group& group) {
    std::vector<std::complex<float>> mine(4, {0, static_cast<float>(group.rank() + 1)}), out(4), half(2);
    const std::span all(mine), sums(out), part(half);
    for (const ReduceOp op : {ReduceOp::min, ReduceOp::max}) {
      const std::string why = ": there is no " + std::string(name(op)) + " of complex64, which has no order";
      const auto refused = [&](const char* call, const std::string& told) {
        require_that(told == call + why, std::string(call) + " says: " + told);
      };
      if (group.rank() == 1) continue;
      refused("all_reduce", error_of([&] { group.all_reduce(all, sums, op); }));
      refused("reduce", error_of([&] { group.reduce(all, sums, op, 0); }));
      refused("reduce_scatter", error_of([&] { group.reduce_scatter(all, part, op); }));
    }
    group.all_reduce(all, sums, ReduceOp::prod);
    require_that(out == std::vector<std::complex<float>>(4, {-2, 0}), "i * 2i");
  }),
            no_problems);
}

}  // namespace
}  // namespace waywiser
