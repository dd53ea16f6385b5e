#include "waywiser/collective/neighbor_exchange/array_part.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "tests/base/error_of.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/collective/neighbor_exchange/array_exchange.hpp"

namespace waywiser {
namespace {

using Numbers = std::vector<std::int64_t>;

std::vector<std::size_t> places_of(const ArrayPart& part) {
  std::vector<std::size_t> all;
  for (std::size_t run = 0; run < (part.apart ? part.layout.runs() : 1); ++run)
    for (std::size_t i = 0; i < (part.apart ? part.layout.run : part.count); ++i)
      all.push_back(part.offset + (part.apart ? part.layout.run_at(run) : 0) + i);
  return all;
}

// NumPy's order, for any number of dimensions.
std::vector<std::size_t> places_in_order(const Numbers& shape, const Numbers& strides) {
  std::vector<std::size_t> all{0};
  for (std::size_t i = 0; i < shape.size(); ++i) {
    std::vector<std::size_t> next;
    for (const std::size_t outer : all)
      for (std::int64_t index = 0; index < shape[i]; ++index)
        next.push_back(outer + static_cast<std::size_t>(index * strides[i]));
    all = next;
  }
  return all;
}

struct Box {
  Numbers shape, strides;
  std::size_t run;  // elements that lie together
  bool apart;
};

TEST(ArrayPart, BoxesOfUpToFourDimensionsAreWhatTheirStridesSay) {
  const Box boxes[] = {
      {{}, {}, 1, false},
      {{7}, {1}, 7, false},
      {{7}, {3}, 1, true},
      {{1, 7, 1}, {99, 1, 5}, 7, false},
      {{4, 5}, {5, 1}, 20, false},
      {{4, 5}, {9, 1}, 5, true},
      {{5, 4}, {1, 5}, 1, true},                                 // transposed
      {{2, 3, 5}, {30, 5, 1}, 15, true},                         // planes whose rows lie together
      {{2, 3, 5}, {40, 10, 1}, 5, true},                         // a box within a box
      {{2, 3, 2, 5}, {200, 40, 10, 1}, 5, true},                 // four dimensions
      {{2, 3, 4}, {100, 20, 2}, 1, true},                        // every second one
      {{2, 2, 2, 3, 4, 5}, {999, 60, 60, 20, 5, 1}, 120, true},  // two outer ones, and joined inner ones
      {{3, 4}, {0, 1}, 4, true},                                 // one row three times
  };
  for (const Box& box : boxes) {
    const ArrayPart part = ArrayPart::box(DataType::float32, box.shape, box.strides);
    const std::vector<std::size_t> wanted = places_in_order(box.shape, box.strides);
    EXPECT_EQ(places_of(part), wanted);
    EXPECT_EQ(part.apart, box.apart);
    EXPECT_EQ(part.layout.run, box.run);
    EXPECT_EQ(part.count, wanted.size());
    EXPECT_EQ(part.array_count, *std::max_element(wanted.begin(), wanted.end()) + 1);
  }
  EXPECT_EQ(ArrayPart::box(DataType::int8, Numbers{4, 0, 2}, Numbers{9, -3, 2}).count, 0U);
}

TEST(ArrayPart, WhatNoBoxDescribesIsRefusedInWords) {
  EXPECT_EQ(error_of([] { ArrayPart::box(DataType::int8, Numbers{4}, Numbers{-1}); }), "has a stride below zero");
  EXPECT_EQ(error_of([] { ArrayPart::box(DataType::int8, Numbers{2, 2, 2, 2}, Numbers{90, 40, 11, 2}); }),
            "has 4 dimensions whose elements lie apart: there can be 3");
  EXPECT_EQ(error_of([] { ArrayPart::indexed(DataType::int8, 10, Numbers{3, -1}, 1); }),
            "has 10 elements: there are not 1 from index -1 on");
  EXPECT_EQ(error_of([] { ArrayPart::indexed(DataType::int8, 10, Numbers{3, 8}, 3); }),
            "has 10 elements: there are not 3 from index 8 on");
}

TEST(ArrayPart, ListsOfElementsAndOfRuns) {
  EXPECT_EQ(places_of(ArrayPart::indexed(DataType::int8, 10, Numbers{9, 0, 4}, 1)),
            (std::vector<std::size_t>{9, 0, 4}));
  EXPECT_EQ(places_of(ArrayPart::indexed(DataType::int8, 10, Numbers{6, 1}, 2)),
            (std::vector<std::size_t>{6, 7, 1, 2}));
  EXPECT_EQ(ArrayPart::indexed(DataType::int8, 10, {}, 1).count, 0U);
  EXPECT_EQ(ArrayPart::indexed(DataType::int8, 10, Numbers{3}, 0).count, 0U);
}

// Two columns of one matrix are apart, though their memory is not.
TEST(ArrayPart, OnlyElementsThatAreSharedOverlap) {
  std::vector<float> matrix(40);
  const auto column = [](std::size_t) { return ArrayPart::box(DataType::float32, Numbers{8}, Numbers{5}); };
  const auto from = [&](std::size_t first) { return Elements(std::span(matrix).subspan(first)); };
  const auto check = [&](std::size_t give_0, std::size_t take_0, std::size_t give_1, std::size_t take_1) {
    const std::vector<ArrayExchange> neighbors{{3, column(0), column(0)}, {4, column(0), column(0)}};
    const std::vector<Elements> arrays{from(give_0), from(take_0), from(give_1), from(take_1)};
    return error_of([&] { check_apart(neighbors, arrays); });
  };
  EXPECT_EQ(check(0, 1, 2, 3), "no error");
  EXPECT_EQ(check(0, 1, 0, 3), "no error");
  EXPECT_EQ(check(0, 1, 1, 3), "neighbor_exchange: the array taken from rank 3 overlaps the array given to rank 4");
  EXPECT_EQ(check(3, 1, 0, 3), "neighbor_exchange: the array taken from rank 4 overlaps the array given to rank 3");
  EXPECT_EQ(check(0, 1, 2, 1), "neighbor_exchange: the array taken from rank 3 overlaps the array taken from rank 4");
  const std::vector<ArrayExchange> twice{{3, {}, ArrayPart::indexed(DataType::float32, 40, Numbers{4, 6, 4}, 1)}};
  const std::vector<Elements> arrays{Elements(), from(0)};
  EXPECT_EQ(error_of([&] { check_apart(twice, arrays); }),
            "neighbor_exchange: the array taken from rank 3 overlaps the array taken from rank 3");
}

}  // namespace
}  // namespace waywiser
