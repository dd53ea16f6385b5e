#include "waywiser/sim/curves.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "waywiser/base/error.hpp"

namespace waywiser::sim {
namespace {

const Path copy{"copy_engine", gpu(0), gpu(1), 1, {}};

Json curve(const Json& ratios) {
  return Json::array({{{"path", "gpu0>gpu1 copy_engine"}, {"operation", "latency"}, {"ratios", ratios}}});
}

TEST(Curves, AreLinearInLogSizeAndConstantBeyond) {
  const Curves curves = curves_from_json(curve(Json::parse("[[16, 2.0], [256, 1.0]]")), "test");
  EXPECT_DOUBLE_EQ(curves.ratio(copy, Operation::latency, 1), 2);
  EXPECT_DOUBLE_EQ(curves.ratio(copy, Operation::latency, 16), 2);
  EXPECT_NEAR(curves.ratio(copy, Operation::latency, 64), std::sqrt(2.0), 1e-12);
  EXPECT_DOUBLE_EQ(curves.ratio(copy, Operation::latency, 1 << 20), 1);
  EXPECT_DOUBLE_EQ(curves.ratio(copy, Operation::streaming, 16), 1);
}

TEST(Curves, RefuseWhatIsNone) {
  for (const char* ratios : {"[]", "[[16, 0]]", "[[16, 1e9]]", "[[256, 1], [16, 1]]", "[[-1, 1]]", "[16]", "3"})
    EXPECT_THROW(curves_from_json(curve(Json::parse(ratios)), "test"), Error) << ratios;
}

}  // namespace
}  // namespace waywiser::sim
