#include "waywiser/measure/rotation.hpp"

#include <gtest/gtest.h>

namespace waywiser {
namespace {

TEST(Rotation, SmallMessagesStayInACacheAndLargeOnesComeFromMemory) {
  for (const Operation operation : {Operation::streaming, Operation::bidirectional, Operation::loaded})
    for (Bytes stride = 64; stride <= (256u << 20); stride *= 2) {
      const Rotation found = rotation(operation, stride);
      const Bytes working_set = stride * static_cast<Bytes>(found.slots);
      if (stride <= 16384)
        EXPECT_LE(working_set, Bytes{1} << 20) << stride;
      else
        EXPECT_GE(working_set, Bytes{64} << 20) << stride;
      EXPECT_LE(found.transfers, 64);
      EXPECT_GE(found.transfers, 2);
    }
  EXPECT_EQ(rotation(Operation::latency, 1 << 20).slots, 1);
  EXPECT_EQ(rotation(Operation::streaming, 0).slots, 64);
}

TEST(Rotation, WarmingUpTakesASmallPartOfASample) {
  EXPECT_EQ(warm_up(1, 8), 1);
  EXPECT_EQ(warm_up(80, 8), 11);
  EXPECT_EQ(warm_up(200'000, 8), 64);
  EXPECT_EQ(warm_up(3, 64 << 20), 0);
}

}  // namespace
}  // namespace waywiser
