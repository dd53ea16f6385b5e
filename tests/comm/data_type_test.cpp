#include "waywiser/comm/data_type.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "tests/base/error_of.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/comm/reduce.hpp"
#include "waywiser/kernels/block/float8.hpp"
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

// The number that the bits are by the definition of the format; not of NaN.
double value_of(unsigned bits, int mantissa, int bias) {
  const int exponent = static_cast<int>(bits & 0x7f) >> mantissa,
            fraction = static_cast<int>(bits & ((1u << mantissa) - 1));
  const double magnitude = exponent == 0 ? std::ldexp(fraction, 1 - bias - mantissa)
                                         : std::ldexp(fraction + (1 << mantissa), exponent - bias - mantissa);
  return (bits & 0x80) != 0 ? -magnitude : magnitude;
}

TEST(DataType, Float8IsTheNumberThatItsFormatSays) {
  for (unsigned bits = 0; bits <= 0xff; ++bits) {
    const Float8E4m3 four{static_cast<std::uint8_t>(bits)};
    const Float8E5m2 five{static_cast<std::uint8_t>(bits)};
    if ((bits & 0x7f) == 0x7f) {
      EXPECT_TRUE(std::isnan(to_float(four)));
    } else {
      ASSERT_EQ(to_float(four), value_of(bits, 3, 7)) << bits;
      ASSERT_EQ(to_float8_e4m3fn(to_float(four)).bits, bits);
    }
    if ((bits & 0x7f) > 0x7c) {
      EXPECT_TRUE(std::isnan(to_float(five)));
    } else {
      ASSERT_EQ(to_float(five),
                (bits & 0x7f) == 0x7c ? std::copysign(INFINITY, to_float(five)) : value_of(bits, 2, 15));
      ASSERT_EQ(std::signbit(to_float(five)), (bits & 0x80) != 0);
      ASSERT_EQ(to_float8_e5m2(to_float(five)).bits, bits);
    }
  }
}

// Between two neighbours: the nearer one, and half way the one with an even last bit.
template <typename Narrow>
void expect_nearest(Narrow narrow, unsigned last, int mantissa, int bias) {
  for (unsigned bits = 0; bits < last; ++bits)
    for (const float sign : {1.0f, -1.0f}) {
      const auto low = static_cast<float>(value_of(bits, mantissa, bias));
      const auto high = static_cast<float>(value_of(bits + 1, mantissa, bias)), half = (low + high) / 2;
      const unsigned minus = sign < 0 ? 0x80 : 0;
      ASSERT_EQ(narrow(sign * std::nextafter(half, low)).bits, bits | minus) << bits;
      ASSERT_EQ(narrow(sign * std::nextafter(half, high)).bits, (bits + 1) | minus) << bits;
      ASSERT_EQ(narrow(sign * half).bits, (bits + bits % 2) | minus) << bits;
    }
}

TEST(DataType, Float8RoundsToTheNearestEven) {
  expect_nearest(to_float8_e4m3fn, 0x7e, 3, 7);
  expect_nearest(to_float8_e5m2, 0x7b, 2, 15);
}

TEST(DataType, WhatIsTooLargeForFloat8BecomesNanOrInfinity) {
  constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(to_float8_e4m3fn(464).bits, 0x7e);  // half way to 480, which there is not
  for (const float large : {std::nextafter(464.0f, infinity), 480.0f, 1e38f, infinity}) {
    EXPECT_EQ(to_float8_e4m3fn(large).bits, 0x7f) << large;
    EXPECT_EQ(to_float8_e4m3fn(-large).bits, 0xff) << large;
  }
  EXPECT_EQ(to_float8_e5m2(std::nextafter(61440.0f, 0.0f)).bits, 0x7b);
  for (const float large : {61440.0f, 65536.0f, 1e38f, infinity}) {
    EXPECT_EQ(to_float8_e5m2(large).bits, 0x7c) << large;
    EXPECT_EQ(to_float8_e5m2(-large).bits, 0xfc) << large;
  }
  for (const float each : {nan, -nan}) {
    EXPECT_EQ(to_float8_e4m3fn(each).bits, 0x7f);
    EXPECT_EQ(to_float8_e5m2(each).bits, 0x7f);
  }
}

static_assert(DataTypeOf<long>::value == DataType::int64 && DataTypeOf<long long>::value == DataType::int64);
static_assert(DataTypeOf<unsigned long>::value == DataType::uint64);
static_assert(DataTypeOf<unsigned long long>::value == DataType::uint64);
static_assert(DataTypeOf<short>::value == DataType::int16 && DataTypeOf<unsigned>::value == DataType::uint32);
static_assert(DataTypeOf<char>::value == (std::is_signed_v<char> ? DataType::int8 : DataType::uint8));
static_assert(DataTypeOf<signed char>::value == DataType::int8 && DataTypeOf<bool>::value == DataType::uint8);
static_assert(DataTypeOf<std::complex<float>>::value == DataType::complex64);
static_assert(DataTypeOf<std::complex<double>>::value == DataType::complex128);

TEST(DataType, OldNumbersStay) {
  EXPECT_EQ(name(static_cast<DataType>(8)), "uint8");
  EXPECT_EQ(name(static_cast<DataType>(9)), "uint16");
  EXPECT_EQ(name(static_cast<DataType>(15)), "float8_e5m2");
  for (int i = 0; i < data_types; ++i) EXPECT_LE(bytes_of(static_cast<DataType>(i)), 16u);
}

TEST(DataType, NamesAreReadBack) {
  for (int i = 0; i < data_types; ++i) EXPECT_EQ(parse_data_type(name(static_cast<DataType>(i))), DataType(i));
  for (int i = 0; i < reduce_ops; ++i) EXPECT_EQ(parse_reduce_op(name(static_cast<ReduceOp>(i))), ReduceOp(i));
  EXPECT_THROW(parse_data_type("float"), Error);
  EXPECT_THROW(parse_reduce_op(""), Error);
}

// The result for two numbers at an odd address.
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

TEST(Reduce, Float8IsReducedAsFloatAndRounded) {
  for (unsigned a = 0; a <= 0xff; ++a)
    for (unsigned b = 0; b <= 0xff; ++b) {
      const Float8E4m3 x{static_cast<std::uint8_t>(a)}, y{static_cast<std::uint8_t>(b)};
      ASSERT_EQ(reduced(ReduceOp::sum, x, y).bits, to_float8_e4m3fn(to_float(x) + to_float(y)).bits);
      ASSERT_EQ(reduced(ReduceOp::prod, x, y).bits, to_float8_e4m3fn(to_float(x) * to_float(y)).bits);
      const Float8E5m2 p{static_cast<std::uint8_t>(a)}, q{static_cast<std::uint8_t>(b)};
      ASSERT_EQ(reduced(ReduceOp::sum, p, q).bits, to_float8_e5m2(to_float(p) + to_float(q)).bits);
      for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod, ReduceOp::min, ReduceOp::max}) {
        ASSERT_EQ(reduced(op, x, y).bits, reduced(op, y, x).bits) << a << name(op) << b;
        ASSERT_EQ(reduced(op, p, q).bits, reduced(op, q, p).bits) << a << name(op) << b;
      }
    }
}

TEST(Reduce, OfFloat8ANanWinsAndMinusZeroIsLess) {
  const Float8E4m3 nan{0x7f}, negative_nan{0xff}, zero{0}, negative_zero{0x80}, one = to_float8_e4m3fn(1);
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod, ReduceOp::min, ReduceOp::max}) {
    EXPECT_EQ(reduced(op, nan, one).bits, 0x7f);
    EXPECT_EQ(reduced(op, one, negative_nan).bits, 0x7f);
    EXPECT_EQ(reduced(op, Float8E5m2{0x7d}, Float8E5m2{0xfc}).bits, 0x7f);
  }
  EXPECT_EQ(reduced(ReduceOp::min, zero, negative_zero).bits, 0x80);
  EXPECT_EQ(reduced(ReduceOp::max, negative_zero, zero).bits, 0);
  EXPECT_EQ(reduced(ReduceOp::sum, Float8E4m3{0x7e}, Float8E4m3{0x7e}).bits, 0x7f);  // 896
  EXPECT_EQ(reduced(ReduceOp::sum, Float8E5m2{0x7b}, Float8E5m2{0x7b}).bits, 0x7c);
}

TEST(Reduce, UnsignedNumbersWrapAndAreCompared) {
  EXPECT_EQ(reduced<std::uint16_t>(ReduceOp::prod, 0xffff, 0xffff), 1);
  EXPECT_EQ(reduced<std::uint32_t>(ReduceOp::min, 1u << 31, 5), 5u);
  EXPECT_EQ(reduced<std::uint64_t>(ReduceOp::max, std::uint64_t{1} << 63, 5), std::uint64_t{1} << 63);
  std::uint64_t value = ~std::uint64_t{0};
  average(DataType::uint64, reinterpret_cast<std::byte*>(&value), 1, 3);
  EXPECT_EQ(value, ~std::uint64_t{0} / 3);
}

TEST(Reduce, ComplexNumbersAreAddedMultipliedAndAveraged) {
  const std::complex<double> a(1, 2), b(-3, 5);
  EXPECT_EQ(reduced(ReduceOp::sum, a, b), (std::complex<double>(-2, 7)));
  EXPECT_EQ(reduced(ReduceOp::avg, a, b), (std::complex<double>(-2, 7)));
  EXPECT_EQ(reduced(ReduceOp::prod, a, b), (std::complex<double>(-13, -1)));
  std::complex<float> value(6, -9);
  average(DataType::complex64, reinterpret_cast<std::byte*>(&value), 1, 3);
  EXPECT_EQ(value, (std::complex<float>(2, -3)));
  std::mt19937_64 generator(1);
  std::uniform_real_distribution<float> any(-1, 1);
  for (int i = 0; i < 1000; ++i) {
    const std::complex<float> x(any(generator), any(generator)), y(any(generator), any(generator));
    ASSERT_EQ(reduced(ReduceOp::prod, x, y), reduced(ReduceOp::prod, y, x));
  }
}

TEST(Reduce, ComplexNumbersHaveNoOrder) {
  for (const DataType type : {DataType::complex64, DataType::complex128})
    for (const ReduceOp op : {ReduceOp::min, ReduceOp::max}) {
      std::byte numbers[16] = {};
      EXPECT_FALSE(has_reduction(type, op));
      EXPECT_EQ(error_of([&] { reduce(type, op, numbers, numbers, 1); }),
                "there is no " + std::string(name(op)) + " of " + std::string(name(type)) + ", which has no order");
    }
}

TEST(Reduce, BitsAreOfIntegers) {
  EXPECT_EQ(reduced<std::int8_t>(ReduceOp::band, -2, 0x73), 0x72);
  EXPECT_EQ(reduced<std::uint16_t>(ReduceOp::bor, 0x8001, 0x0ff0), 0x8ff1);
  EXPECT_EQ(reduced<std::uint64_t>(ReduceOp::bxor, ~std::uint64_t{0}, 5), ~std::uint64_t{5});
  const ReduceOp logical[] = {ReduceOp::land, ReduceOp::lor, ReduceOp::lxor};
  for (const bool a : {false, true})
    for (const bool b : {false, true}) {
      const bool wanted[] = {a && b, a || b, a != b};
      for (int op = 0; op < 3; ++op) EXPECT_EQ(reduced<std::int32_t>(logical[op], a ? 6 : 0, b ? -1 : 0), wanted[op]);
    }
  for (const DataType type : {DataType::float64, DataType::bfloat16, DataType::complex64, DataType::float8_e5m2})
    for (int op = arithmetic_ops; op < reduce_ops; ++op) {
      std::byte numbers[16] = {};
      const auto each = static_cast<ReduceOp>(op);
      EXPECT_EQ(error_of([&] { reduce(type, each, numbers, numbers, 1); }),
                "there is no " + std::string(name(each)) + " of " + std::string(name(type)) + ", which is no integer");
    }
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
