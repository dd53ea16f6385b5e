#include "waywiser/comm/data_type.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/reduce.hpp"
#include "waywiser/kernels/block/half.hpp"

namespace waywiser {
namespace {

TEST(DataType, HalvesSurviveTheWayThroughFloat) {
  for (unsigned bits = 0; bits <= 0xffff; ++bits) {
    const Float16 half{static_cast<std::uint16_t>(bits)};
    const Bfloat16 brain{static_cast<std::uint16_t>(bits)};
    if (std::isnan(to_float(half)))
      EXPECT_TRUE(std::isnan(to_float(to_float16(to_float(half)))));
    else
      ASSERT_EQ(to_float16(to_float(half)).bits, bits);
    if (std::isnan(to_float(brain)))
      EXPECT_TRUE(std::isnan(to_float(to_bfloat16(to_float(brain)))));
    else
      ASSERT_EQ(to_bfloat16(to_float(brain)).bits, bits);
  }
}

TEST(DataType, HalvesRoundToTheNearestEven) {
  EXPECT_EQ(to_float16(1 + 0x1p-11f).bits, to_float16(1).bits);
  EXPECT_EQ(to_float16(1 + 0x1.8p-10f).bits, to_float16(1 + 0x1p-9f).bits);
  EXPECT_EQ(to_float16(65519).bits, 0x7bff);
  EXPECT_EQ(to_float16(65520).bits, 0x7c00);
  EXPECT_EQ(to_float16(0x1p-25f).bits, 0);
  EXPECT_EQ(to_float16(0x1.8p-25f).bits, 1);
  EXPECT_EQ(to_float16(-0.0f).bits, 0x8000);
  EXPECT_EQ(to_bfloat16(1 + 0x1p-8f).bits, to_bfloat16(1).bits);
  EXPECT_EQ(to_bfloat16(1 + 0x1.8p-7f).bits, to_bfloat16(1 + 0x1p-6f).bits);
  EXPECT_EQ(to_bfloat16(std::numeric_limits<float>::max()).bits, 0x7f80);
}

TEST(DataType, NamesAreReadBack) {
  for (int i = 0; i < data_types; ++i) EXPECT_EQ(parse_data_type(name(static_cast<DataType>(i))), DataType(i));
  for (int i = 0; i < reduce_ops; ++i) EXPECT_EQ(parse_reduce_op(name(static_cast<ReduceOp>(i))), ReduceOp(i));
  EXPECT_THROW(parse_data_type("float"), Error);
  EXPECT_THROW(parse_reduce_op(""), Error);
}

// What two numbers give, at an odd address.
template <typename T>
T reduced(ReduceOp op, T a, T b) {
  std::vector<std::byte> left(sizeof(T) + 1), right(sizeof(T) + 1);
  std::memcpy(left.data() + 1, &a, sizeof a);
  std::memcpy(right.data() + 1, &b, sizeof b);
  reduce(DataTypeOf<T>::value, op, left.data() + 1, right.data() + 1, 1);
  std::memcpy(&a, left.data() + 1, sizeof a);
  return a;
}

TEST(Reduce, EveryOperationOnEveryKindOfNumber) {
  EXPECT_EQ(reduced<double>(ReduceOp::sum, 1.5, 2), 3.5);
  EXPECT_EQ(reduced<float>(ReduceOp::prod, 1.5f, 2), 3);
  EXPECT_EQ(reduced<std::int8_t>(ReduceOp::sum, 127, 1), -128);
  EXPECT_EQ(reduced<std::int16_t>(ReduceOp::min, -3, 2), -3);
  EXPECT_EQ(reduced<std::int32_t>(ReduceOp::max, -3, 2), 2);
  EXPECT_EQ(reduced<std::int64_t>(ReduceOp::prod, INT64_MAX, 2), -2);
  EXPECT_EQ(reduced<std::uint8_t>(ReduceOp::max, 200, 100), 200);
  EXPECT_EQ(to_float(reduced(ReduceOp::avg, to_float16(1.5f), to_float16(2))), 3.5f);
  EXPECT_EQ(to_float(reduced(ReduceOp::min, to_bfloat16(1.5f), to_bfloat16(-2))), -2);
}

TEST(Reduce, AverageDividesBySizeOfTheGroup) {
  double value = 10;
  average(DataType::float64, reinterpret_cast<std::byte*>(&value), 1, 4);
  EXPECT_EQ(value, 2.5);
  std::int8_t small[] = {-7, 100};
  average(DataType::int8, reinterpret_cast<std::byte*>(small), 2, 200);
  EXPECT_EQ(small[0], 0);
  EXPECT_EQ(small[1], 0);
}

}  // namespace
}  // namespace waywiser
