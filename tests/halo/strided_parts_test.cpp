#include "waywiser/halo/strided_parts.hpp"

#include <gtest/gtest.h>

#include "tests/halo/made_up_domain.hpp"
#include "waywiser/halo/boundary.hpp"

namespace waywiser {
namespace {

using Places = std::vector<std::size_t>;

// Of each byte of a part, in order, its place in the array.
Places places_of(const ArrayPart& part) {
  Places all;
  const std::size_t runs = part.apart ? part.layout.runs() : 1, length = part.apart ? part.layout.run : part.count;
  for (std::size_t run = 0; run < runs; ++run)
    for (std::size_t i = 0; i < length; ++i)
      all.push_back(part.offset + (part.apart ? part.layout.run_at(run) : 0) + i);
  return all;
}

Places places_of(const std::vector<StridedRows>& copies) {
  Places all;
  for (const StridedRows& each : copies)
    for (std::size_t plane = 0; plane < each.planes; ++plane)
      for (std::size_t row = 0; row < each.rows; ++row)
        for (std::size_t i = 0; i < each.width; ++i)
          all.push_back(each.offset + plane * each.plane_stride + row * each.row_stride + i);
  return all;
}

TEST(StridedParts, MoveTheBytesOfThePartInItsOrder) {
  std::size_t strided = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed)
    for (const MadeUpDomain& domain : {MadeUpDomain::of_grid(1 + static_cast<int>(seed % 4), seed),
                                       MadeUpDomain::of_lists(1 + static_cast<int>(seed % 4), seed)})
      for (const HaloPartition& partition : domain.partitions)
        for (const BoundaryPart& each : boundary_of(partition, domain.fields).gives) {
          const std::vector<StridedRows> copies = strided_copies(each.part);
          ASSERT_EQ(places_of(copies), places_of(each.part)) << seed;
          for (const StridedRows& copy : copies) {
            strided += copy.rows > 1;
            ASSERT_TRUE(copy.planes == 1 || copy.rows == 1 || copy.plane_stride % copy.row_stride == 0) << seed;
          }
        }
  EXPECT_GT(strided, 1000u);
}

TEST(StridedParts, AFaceIsOneCopy) {
  const auto face = [](std::vector<std::int64_t> counts) {
    return strided_copies(ArrayPart::box(DataType::uint8, counts, std::vector<std::int64_t>{80, 8, 1}));
  };
  EXPECT_EQ(face({1, 6, 8}), (std::vector<StridedRows>{{0, 48}}));
  EXPECT_EQ(face({5, 1, 8}), (std::vector<StridedRows>{{0, 8, 5, 80}}));
  EXPECT_EQ(face({5, 6, 1}), (std::vector<StridedRows>{{0, 1, 6, 8, 5, 80}}));
  EXPECT_EQ(face({0, 6, 1}), std::vector<StridedRows>{});
}

TEST(StridedParts, RunsOfAListAtOneDistanceAreOneCopy) {
  const auto copies = [](const std::vector<std::int64_t>& indices) {
    return strided_copies(ArrayPart::indexed(DataType::uint8, 100, indices, 2));
  };
  EXPECT_EQ(copies({3, 8, 13, 20, 30, 40}), (std::vector<StridedRows>{{3, 2, 3, 5}, {20, 2, 3, 10}}));
  EXPECT_EQ(copies({50, 8, 4}), (std::vector<StridedRows>{{50, 2}, {8, 2}, {4, 2}}));
}

}  // namespace
}  // namespace waywiser
