#include "waywiser/policy/cost.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

Point point_at(Bytes bytes, double seconds) {
  Point point;
  point.bytes = bytes;
  point.seconds = seconds;
  point.low = 0.9 * seconds;
  point.high = 1.2 * seconds;
  return point;
}

TEST(Cost, IsLinearBetweenPointsAndInfiniteOutside) {
  const Cost cost({point_at(100, 1), point_at(200, 3), point_at(1000, 3)});
  EXPECT_DOUBLE_EQ(cost.seconds(100), 1);
  EXPECT_DOUBLE_EQ(cost.seconds(150), 2);
  EXPECT_DOUBLE_EQ(cost.seconds(200), 3);
  EXPECT_DOUBLE_EQ(cost.seconds(700), 3);
  EXPECT_DOUBLE_EQ(cost.interval(150).low, 1.8);
  EXPECT_DOUBLE_EQ(cost.interval(150).high, 2.4);
  for (const double bytes : {0.0, 99.0, 1001.0}) EXPECT_TRUE(std::isinf(cost.seconds(bytes))) << bytes;
  EXPECT_TRUE(std::isinf(Cost().seconds(5)));
}

TEST(Cost, UnorderedPointsAreRefused) {
  EXPECT_THROW(Cost({point_at(2, 1), point_at(1, 1)}), Error);
  EXPECT_THROW(Cost({point_at(2, 1), point_at(2, 1)}), Error);
}

}  // namespace
}  // namespace waywiser
