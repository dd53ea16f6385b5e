#include "waywiser/base/way.hpp"

#include <gtest/gtest.h>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

TEST(Way, IsReadAsItIsWritten) {
  for (const char* written : {"LL", "two_shot_LL128(blocks=16,threads=512)", "direct(piece=64K)",
                              "split(share=75+25,ways=copy_engine+relay)", "ucx(device=mlx5_0:1+mlx5_1:1)"})
    EXPECT_EQ(text(parse_way(written)), written);
  EXPECT_EQ(text(parse_way("direct(piece=64K,blocks=16)")), "direct(blocks=16,piece=64K)");
  EXPECT_EQ(parse_way("LL(blocks=16)"), (Way{"LL", {{"blocks", "16"}}}));
}

TEST(Way, WhatHasAnotherFormIsRefusedInOneLine) {
  for (const char* written :
       {"", "(blocks=4)", "LL(", "LL()", "LL(blocks)", "LL(blocks=)", "LL(=4)", "LL(blocks=4", "LL(blocks=4,)",
        "LL(blocks=4)x", "LL(blocks=4))", "LL(blocks=4,blocks=4)", "LL)", "LL=4", "a,b"})
    EXPECT_THROW(parse_way(written), Error) << written;
  try {
    parse_way("LL(");
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "'LL(' is not a way: it has the form NAME or NAME(KEY=VALUE,...)");
  }
}

TEST(Way, NumbersAreInTheirRange) {
  unsigned blocks = 7;
  EXPECT_TRUE(parse_way("LL").read("blocks", 64, blocks));
  EXPECT_EQ(blocks, 7u) << "one that is not there stays";
  EXPECT_TRUE(parse_way("LL(blocks=64)").read("blocks", 64, blocks));
  EXPECT_EQ(blocks, 64u);
  for (const char* written :
       {"LL(blocks=65)", "LL(blocks=0)", "LL(blocks=-1)", "LL(blocks=4x)", "LL(blocks=99999999999)"})
    EXPECT_FALSE(parse_way(written).read("blocks", 64, blocks)) << written;
}

TEST(Way, HasOnlyTheParametersOfAList) {
  EXPECT_TRUE(parse_way("LL").has_only({"blocks"}));
  EXPECT_TRUE(parse_way("LL(blocks=1)").has_only({"blocks", "piece"}));
  EXPECT_FALSE(parse_way("LL(blocks=1,threads=2)").has_only({"blocks", "piece"}));
}

}  // namespace
}  // namespace waywiser
