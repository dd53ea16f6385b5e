// Scans, and reductions that find where a value is.
#include "waywiser/group/scans.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/base/error_of.hpp"
#include "tests/comm/test_ranks.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/device/platform.hpp"

namespace waywiser {
namespace {

using Numbers = std::vector<std::int64_t>;

Numbers of_rank(int rank, std::size_t count) {
  Numbers values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = (rank + 1) * static_cast<std::int64_t>(i + 1);
  return values;
}

// The sum over the first `ranks`.
Numbers scanned(int ranks, std::size_t count) { return of_rank(ranks * (ranks + 1) / 2 - 1, count); }

void scan_in_every_way(Group& group, std::size_t count) {
  const int rank = group.rank();
  const Numbers mine = of_rank(rank, count), untouched(count, -5);
  Numbers out = untouched, in_place = mine, begun = untouched;
  scan(group, std::span(mine), std::span(out));
  require_that(out == scanned(rank + 1, count), "scan");
  scan(group, std::span(in_place), std::span(in_place));
  require_that(in_place == out, "scan in place");
  scan(group, std::span(mine), std::span(begun), ReduceOp::sum, Mode::begin).wait();
  require_that(begun == out, "scan that was begun");
  Numbers lower = untouched, lower_in_place = mine;
  exscan(group, std::span(mine), std::span(lower));
  require_that(lower == (rank == 0 ? untouched : scanned(rank, count)), "exscan");
  exscan(group, std::span(lower_in_place), std::span(lower_in_place));
  require_that(lower_in_place == (rank == 0 ? mine : lower), "exscan in place");
}

TEST(Scans, GiveEachRankTheReductionOfTheLowerOnes) {
  for (const int ranks : {1, 2, 5})
    EXPECT_EQ(TestRanks(ranks).in_processes([](Group& group) {
      for (const std::size_t count : {0, 1, 1000, 70'000}) scan_in_every_way(group, count);
    }),
              no_problems);
}

// Also where nothing is combined: in a group of one rank, at the first rank of a scan, and at the second of an exscan.
TEST(Scans, LogicalOperationsGive1Or0AtEveryRank) {
  for (const int ranks : {1, 2, 3})
    EXPECT_EQ(TestRanks(ranks).in_processes([](Group& group) {
      const Numbers mine(static_cast<std::size_t>(group.size()), group.rank() == 0 ? 6 : 0);
      for (const ReduceOp op : {ReduceOp::land, ReduceOp::lor, ReduceOp::lxor})
        for (int repeat = 0; repeat < 4; ++repeat) {
          const Numbers first(mine.size(), 1), none(mine.size(), 0);
          const Numbers& later = op == ReduceOp::land ? none : first;
          Numbers all(mine.size()), scanned(mine.size()), below(mine.size(), -5), at_root(mine.size()), part(1);
          group.all_reduce(std::span(mine), std::span(all), op);
          group.reduce(std::span(mine), std::span(at_root), op, 0);
          group.reduce_scatter(std::span(mine), std::span(part), op);
          scan(group, std::span(mine), std::span(scanned), op);
          exscan(group, std::span(mine), std::span(below), op);
          const Numbers& whole = group.size() == 1 ? first : later;
          require_that(all == whole && part[0] == whole[0] && (group.rank() != 0 || at_root == whole), "a reduction");
          require_that(scanned == (group.rank() == 0 ? first : later), "scan");
          require_that(
              group.rank() == 0 ? below == Numbers(mine.size(), -5) : below == (group.rank() == 1 ? first : later),
              "exscan");
        }
    }),
              no_problems);
}

// They go through host memory.
TEST(Scans, OfArraysOnGpus) {
  TestRanks ranks(3);
  ranks.virtual_gpus = 3;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    const int rank = group.rank();
    const Memory array = group.platform()->allocate(gpu(rank), 800, Allocation::gpu);
    const auto stream = group.platform()->open_stream(gpu(rank));
    const Memory host = group.platform()->allocate(waywiser::host(0), 800, Allocation::pinned);
    auto* numbers = reinterpret_cast<std::int64_t*>(host.region().data);
    const Elements on_gpu(array.region(), DataType::int64);
    const auto run = [&](Future (*scans)(Group&, ConstElements, Elements, ReduceOp, Mode), Mode mode) {
      const Numbers mine = of_rank(rank, 100);
      std::copy(mine.begin(), mine.end(), numbers);
      stream->copy(array.region(), host.region());
      stream->synchronize(Deadline::in(20));
      scans(group, on_gpu, on_gpu, ReduceOp::sum, mode);
      group.synchronize(*stream);
      stream->copy(host.region(), array.region());
      stream->synchronize(Deadline::in(20));
      return Numbers(numbers, numbers + 100);
    };
    for (const Mode mode : {Mode::wait, Mode::on(*stream)}) {
      require_that(run(scan, mode) == scanned(rank + 1, 100), "scan");
      require_that(run(exscan, mode) == (rank == 0 ? of_rank(0, 100) : scanned(rank, 100)), "exscan");
    }
  }),
            no_problems);
}

TEST(Scans, RefuseWhatTheyDoNotHave) {
  EXPECT_EQ(TestRanks(2).in_processes([](Group& group) {
    std::vector<double> two(2), three(3);
    const auto refused = [&](const std::string& told, const std::string& words) { require_that(told == words, told); };
    refused(error_of([&] { scan(group, std::span(two), std::span(two), ReduceOp::avg); }), "scan: there is no avg");
    refused(error_of([&] { exscan(group, std::span(two), std::span(two), ReduceOp::land); }),
            "exscan: there is no land of float64, which is no integer");
    refused(error_of([&] { scan(group, std::span(two), std::span(three)); }),
            "scan: the output has 3 elements, 2 are needed");
    group.barrier();
  }),
            no_problems);
}

void find_extremes(Group& group) {
  const double rank = group.rank(), nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> mine{rank, -rank, 4, group.rank() == 1 ? -nan : 0, group.rank() == 1 ? -0.0 : 0.0};
  const Numbers at{10 + group.rank(), group.rank(), 7 - group.rank(), group.rank(), group.rank()};
  std::vector<double> found(5), in_place = mine;
  Numbers found_at(5), at_in_place = at;
  minloc(group, std::span(mine), at, std::span(found), found_at);
  require_that(found_at == Numbers{10, 2, 5, 1, 1}, "the locations of the least");
  require_that(found[1] == -2 && std::isnan(found[3]) && std::signbit(found[4]), "the least");
  maxloc(group, std::span(in_place), at_in_place, std::span(in_place), at_in_place);
  require_that(at_in_place == Numbers{12, 0, 5, 1, 0}, "the locations of the greatest");
  require_that(in_place[0] == 2 && std::isnan(in_place[3]) && !std::signbit(in_place[4]), "the greatest");
}

TEST(Locations, AreThoseOfTheExtremeValuesAndTheLowestOfEqualOnes) {
  EXPECT_EQ(TestRanks(3).in_processes(find_extremes), no_problems);
}

TEST(Locations, AreRefusedBeforeOtherRanksHearOfIt) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    std::vector<double> two(2);
    Numbers at(2), one(1);
    const Memory array = group.platform()->allocate(gpu(group.rank()), 16, Allocation::gpu);
    const Elements on_gpu(array.region(), DataType::float64);
    const auto told = error_of([&] { minloc(group, std::span(two), one, std::span(two), at); });
    require_that(told == "all_reduce: the array of locations has 1 elements, 2 are needed", told);
    const auto of_gpu = error_of([&] { maxloc(group, on_gpu, at, on_gpu, at); });
    require_that(of_gpu == "minloc and maxloc are for arrays in host memory", of_gpu);
    group.barrier();
  }),
            no_problems);
}

}  // namespace
}  // namespace waywiser
