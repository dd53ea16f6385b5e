#include "waywiser/halo/partition.hpp"

#include <gtest/gtest.h>

#include "tests/base/error_of.hpp"
#include "waywiser/halo/grid.hpp"

namespace waywiser {
namespace {

using Numbers = std::vector<std::int64_t>;

TEST(HaloPartition, ListsThatDoNotFitAreRefused) {
  const auto refused = [](int peer, const Numbers& give, const Numbers& take) {
    const HaloLists lists[] = {{peer, give, take}};
    return error_of([&] { listed_partition(0, 2, 6, lists); });
  };
  EXPECT_EQ(refused(1, {0, 1}, {6}), "a partition: cell 6 in a list of rank 1: there are 6");
  EXPECT_EQ(refused(1, {-1}, {}), "a partition: cell -1 in a list of rank 1: there are 6");
  EXPECT_EQ(refused(2, {0}, {1}), "a partition: a neighbour is rank 2: there are 2 ranks");
  EXPECT_EQ(refused(1, {0, 3}, {5, 3}), "a partition: cell 3 is given to rank 1 and taken from rank 1");
  EXPECT_EQ(refused(1, {}, {5, 2, 5}), "a partition: cell 5 is taken from rank 1 and taken from rank 1");
  EXPECT_EQ(refused(0, {1, 2}, {3}),
            "a partition: this rank does not give itself as many cells as it takes from itself");
}

TEST(HaloPartition, AListWithoutGapsIsContiguous) {
  const Numbers give = {2, 3, 4}, take = {5, 1};
  const HaloLists lists[] = {{1, give, take}};
  const HaloPartition partition = listed_partition(0, 2, 6, lists);
  EXPECT_FALSE(partition.gives[0].cells.apart);
  EXPECT_EQ(partition.gives[0].cells.offset, 2u);
  EXPECT_EQ(partition.gives[0].cells.count, 3u);
  EXPECT_TRUE(partition.takes[0].cells.apart);
}

TEST(HaloGrid, IsCutWhereItCostsLeast) {
  EXPECT_EQ(ranks_per_dimension(Numbers{100, 10}, 4), (std::vector<int>{4, 1}));
  EXPECT_EQ(ranks_per_dimension(Numbers{10, 100}, 4), (std::vector<int>{1, 4}));
  EXPECT_EQ(ranks_per_dimension(Numbers{64, 64}, 4), (std::vector<int>{2, 2}));
  EXPECT_EQ(ranks_per_dimension(Numbers{64, 64, 64}, 8), (std::vector<int>{2, 2, 2}));
  EXPECT_EQ(ranks_per_dimension(Numbers{64, 64}, 2), (std::vector<int>{2, 1}));
  EXPECT_EQ(ranks_per_dimension(Numbers{5}, 3), (std::vector<int>{3}));
}

TEST(HaloGrid, BoxesDifferByOneCell) {
  const int parts[] = {2, 3};
  const HaloGrid grid = even_grid({5, 7}, {1, 2}, {false, true}, parts);
  ASSERT_EQ(grid.boxes.size(), 6u);
  EXPECT_EQ(grid.boxes[0], (GridBox{{0, 0}, {3, 3}}));
  EXPECT_EQ(grid.boxes[4], (GridBox{{3, 3}, {2, 2}}));
  EXPECT_EQ(grid.local_shape(4), (Numbers{4, 6}));
}

TEST(HaloGrid, SidesSayWhereTheNeighbourLies) {
  const int parts[] = {2, 2};
  const HaloGrid grid = even_grid({4, 4}, {1, 1}, {false, false}, parts);
  const HaloPartition partition = grid_partition(grid, 0);
  ASSERT_EQ(partition.gives.size(), 3u);
  const std::vector<int> faces[] = {{0, 1}, {1, 0}, {1, 1}};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(partition.gives[i].face, faces[i]);
    EXPECT_EQ(partition.takes[i].face, faces[i]);
  }
}

TEST(HaloGrid, ThatIsNoneIsRefused) {
  const int one[] = {1}, two[] = {2}, none[] = {0}, five[] = {1, 1, 1, 1, 1};
  EXPECT_EQ(error_of([&] { even_grid(Numbers(5, 2), Numbers(5, 1), std::vector<bool>(5), five); }),
            "a grid: 5 dimensions: there can be 1 to 4");
  EXPECT_EQ(error_of([&] { even_grid({4}, {1, 1}, {false}, one); }),
            "a grid: ghost and periodic have one entry for each of the 1 dimensions");
  EXPECT_EQ(error_of([&] { even_grid({4}, {-1}, {false}, one); }),
            "a grid: a shape or ghost width that is below 0 or too large");
  EXPECT_EQ(error_of([&] { even_grid({4}, {1}, {false}, none); }),
            "a grid: the number of parts is at least 1 for each dimension");
  HaloGrid grid = even_grid({4}, {1}, {false}, two);
  EXPECT_EQ(error_of([&] { grid_partition(grid, 2); }), "a grid: there is no box of rank 2");
  grid.boxes[1].first[0] = 1;
  EXPECT_EQ(error_of([&] { grid_partition(grid, 0); }), "a grid: the box of rank 1 overlaps that of rank 0");
  grid.boxes[1] = {{3}, {1}};
  EXPECT_EQ(error_of([&] { grid_partition(grid, 0); }), "a grid: the boxes leave cells out");
  grid.boxes[1] = {{3}, {2}};
  EXPECT_EQ(error_of([&] { grid_partition(grid, 0); }), "a grid: the box of rank 1 lies outside");
}

}  // namespace
}  // namespace waywiser
