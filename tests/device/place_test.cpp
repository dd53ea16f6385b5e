#include "waywiser/device/place.hpp"

#include <gtest/gtest.h>

#include "waywiser/base/error.hpp"
#include "waywiser/device/region.hpp"

namespace waywiser {
namespace {

TEST(Place, TextReadsBack) {
  for (const Place place :
       {host(0), host(17), gpu(0), gpu(4095), seen_from_other(gpu(3)), on_node(0x0123456789abcdef, gpu(2))})
    EXPECT_EQ(parse_place(text(place)), place);
}

TEST(Place, OtherTextIsRefused) {
  for (const char* text : {"", "gpu", "host", "gpu-1", "gpu4096", "gpu1x", "hos0", "GPU0", "gpu 1", "gpu99999999999",
                           "other:", "other:other:gpu0", "hse-a:gpu0", "0123456789abcdef0:gpu0",
                           "0000000000000000:gpu0", "0000000000000001:gpu0", "0123456789abcdef:"})
    EXPECT_THROW(parse_place(text), Error) << text;
}

TEST(Place, OfATypeOfNodeIsSeenAsHereFromThere) {
  const Place there = parse_place("b7ef00aa67f28849:gpu0");
  EXPECT_EQ(there.node, node_type("b7ef00aa67f28849"));
  EXPECT_EQ(seen_from_other(there), gpu(0));
  EXPECT_EQ(seen_from_other(gpu(0)), parse_place("other:gpu0"));
  EXPECT_EQ(node_type("not a fingerprint"), some_other_node);
}

TEST(Region, SlicesStayInside) {
  std::byte bytes[10];
  const Region region{bytes, 10, host(0)};
  EXPECT_EQ(region.slice(3, 7).data, bytes + 3);
  EXPECT_EQ(region.slice(10, 0).bytes, 0u);
  EXPECT_THROW(region.slice(3, 8), Error);
  EXPECT_THROW(region.slice(11, 0), Error);
  EXPECT_THROW(region.slice(1, ~Bytes{0}), Error);
}

TEST(Region, OverlapNeedsOnePlaceAndCommonBytes) {
  std::byte bytes[10];
  const Region all{bytes, 10, host(0)};
  EXPECT_TRUE(overlap(all.slice(0, 5), all.slice(4, 5)));
  EXPECT_FALSE(overlap(all.slice(0, 5), all.slice(5, 5)));
  EXPECT_FALSE(overlap(all.slice(0, 5), all.slice(2, 0)));
  EXPECT_FALSE(overlap(all, {bytes, 10, gpu(0)}));
}

}  // namespace
}  // namespace waywiser
