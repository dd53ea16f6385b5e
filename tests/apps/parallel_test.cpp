#include "apps/parallel.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "tests/base/error_of.hpp"
#include "tests/comm/test_ranks.hpp"

namespace {

using apps::Array, apps::Processor, waywiser::Group;

TEST(ParallelLoops, ReachEveryCellOnce) {
  EXPECT_EQ(waywiser::TestRanks(1).in_threads([](Group& group) {
    for (const int threads : {1, 2, 5}) {
      Processor processor(group, threads);
      for (const std::int64_t count : {0, 1, 3, 1000}) {
        Array<int> cells(processor, count), grid(processor, count * 7);
        processor.for_each(count, [values = cells.data()](std::int64_t i) { values[i] += static_cast<int>(i) + 1; });
        processor.for_each(count, 7, [values = grid.data()](std::int64_t row, std::int64_t column) {
          values[row * 7 + column] += static_cast<int>(row * 7 + column) + 1;
        });
        processor.wait();
        for (const Array<int>* each : {&cells, &grid}) {
          std::vector<int> expected(static_cast<std::size_t>(each->size()));
          std::iota(expected.begin(), expected.end(), 1);
          waywiser::require_that(each->values() == expected, "a loop reaches every cell once");
        }
      }
    }
  }),
            waywiser::no_problems);
}

TEST(ParallelLoops, SumsDoNotDependOnTheThreads) {
  EXPECT_EQ(waywiser::TestRanks(1).in_threads([](Group& group) {
    const auto term = [](std::int64_t i) { return 1.0 / static_cast<double>(i + 1); };
    Processor alone(group, 1);
    const double expected = alone.sum(100000, term);
    waywiser::require_that(expected > 12.0901461 && expected < 12.0901462, "the harmonic number");
    for (const int threads : {2, 3, 8}) {
      Processor processor(group, threads);
      waywiser::require_that(processor.sum(100000, term) == expected, "the same bits by any number of threads");
      waywiser::require_that(processor.max(100000, term) == 1.0, "the largest term");
      waywiser::require_that(processor.sum(0, term) == 0.0, "an empty sum");
    }
  }),
            waywiser::no_problems);
}

TEST(ParallelLoops, RefuseAnImpossibleNumberOfThreads) {
  for (const int threads : {0, -1, 100000})
    EXPECT_NE(waywiser::error_of([&] { apps::HostThreads all(threads); }).find("1 to 1024"), std::string::npos);
}

}  // namespace
