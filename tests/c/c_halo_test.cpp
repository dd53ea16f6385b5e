#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "waywiser/c/waywiser.h"

namespace waywiser {
namespace {

std::string said() { return ww_error_text(); }

// A group of one rank with a virtual GPU, and a periodic grid of 3 x 4 cells with ghosts of width 1.
class CHalo : public testing::Test {
 protected:
  static constexpr std::int64_t shape[] = {3, 4}, ghost[] = {1, 1}, first[] = {0, 0};
  static constexpr int periodic[] = {1, 1};
  static constexpr std::size_t rows = 5, columns = 6, cells = rows * columns;

  void SetUp() override {
    ww_join_options options{};
    options.size = sizeof options;
    options.timeout = 20;
    options.virtual_gpus = 1;
    ASSERT_EQ(ww_join(&options, &group_), WW_OK) << said();
    ASSERT_EQ(ww_halo_grid(group_, 2, shape, ghost, periodic, first, shape, &halo_), WW_OK) << said();
  }
  void TearDown() override {
    ww_halo_free(halo_);
    EXPECT_EQ(ww_close(group_), WW_OK) << said();
    ww_group_free(group_);
  }
  static void expect_refused(int code, const std::string& words) {
    EXPECT_EQ(code, WW_INVALID_INPUT) << words;
    EXPECT_NE(said().find(words), std::string::npos) << said();
  }
  static std::vector<double> before() {
    std::vector<double> values(cells, -1);
    for (std::size_t row = 1; row < rows - 1; ++row)
      for (std::size_t column = 1; column < columns - 1; ++column)
        values[row * columns + column] = static_cast<double>(10 * row + column);
    return values;
  }
  static std::vector<double> after() {
    std::vector<double> values(cells);
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t column = 0; column < columns; ++column)
        values[row * columns + column] = static_cast<double>(10 * ((row + 2) % 3 + 1) + (column + 3) % 4 + 1);
    return values;
  }

  ww_group* group_ = nullptr;
  ww_halo* halo_ = nullptr;
};

TEST_F(CHalo, NullIsRefusedByEveryFunction) {
  ww_halo* other = nullptr;
  std::int64_t box[2] = {};
  std::size_t count = 0;
  int variant = 0;
  ww_halo_side side{};
  ww_halo_seconds seconds{};
  ww_halo_totals totals{};
  const std::vector<std::function<int()>> calls = {
      [&] { return ww_grid_box(2, nullptr, 1, 0, box, box); },
      [&] { return ww_grid_box(2, shape, 1, 0, nullptr, box); },
      [&] { return ww_grid_box(2, shape, 1, 0, box, nullptr); },
      [&] { return ww_halo_grid(nullptr, 2, shape, ghost, periodic, first, shape, &other); },
      [&] { return ww_halo_grid(group_, 2, nullptr, ghost, periodic, first, shape, &other); },
      [&] { return ww_halo_grid(group_, 2, shape, nullptr, periodic, first, shape, &other); },
      [&] { return ww_halo_grid(group_, 2, shape, ghost, nullptr, first, shape, &other); },
      [&] { return ww_halo_grid(group_, 2, shape, ghost, periodic, nullptr, shape, &other); },
      [&] { return ww_halo_grid(group_, 2, shape, ghost, periodic, first, nullptr, &other); },
      [&] { return ww_halo_grid(group_, 2, shape, ghost, periodic, first, shape, nullptr); },
      [&] { return ww_halo_mesh(nullptr, 3, nullptr, 0, &other); },
      [&] { return ww_halo_mesh(group_, 3, nullptr, 1, &other); },
      [&] { return ww_halo_mesh(group_, 3, nullptr, 0, nullptr); },
      [&] { return ww_halo_cells(nullptr, &count); },
      [&] { return ww_halo_cells(halo_, nullptr); },
      [&] { return ww_halo_set_fields(nullptr, nullptr, 0); },
      [&] { return ww_halo_set_fields(halo_, nullptr, 1); },
      [&] { return ww_halo_start(nullptr, nullptr); },
      [&] { return ww_halo_finish(nullptr); },
      [&] { return ww_halo_exchange(nullptr, nullptr); },
      [&] { return ww_halo_use(nullptr, WW_HALO_PACKED); },
      [&] { return ww_halo_use_sides(nullptr, nullptr, 0); },
      [&] { return ww_halo_use_sides(halo_, nullptr, 1); },
      [&] { return ww_halo_side_count(nullptr, &count); },
      [&] { return ww_halo_side_count(halo_, nullptr); },
      [&] { return ww_halo_side_at(nullptr, 0, &side); },
      [&] { return ww_halo_side_at(halo_, 0, nullptr); },
      [&] { return ww_halo_tune(nullptr, 1); },
      [&] { return ww_halo_tune_file(nullptr, 1, "answers.json"); },
      [&] { return ww_halo_tune_file(halo_, 1, nullptr); },
      [&] { return ww_halo_times(nullptr, &seconds); },
      [&] { return ww_halo_times(halo_, nullptr); },
      [&] { return ww_halo_variant_in_use(nullptr, &variant); },
      [&] { return ww_halo_variant_in_use(halo_, nullptr); },
      [&] { return ww_halo_counts(nullptr, WW_HALO_PACKED, &totals); },
      [&] { return ww_halo_counts(halo_, WW_HALO_PACKED, nullptr); }};
  for (std::size_t i = 0; i < calls.size(); ++i) {
    SCOPED_TRACE("call " + std::to_string(i));
    expect_refused(calls[i](), "NULL");
  }
  const ww_halo_neighbor no_lists[] = {{0, nullptr, 1, nullptr, 1}};
  expect_refused(ww_halo_mesh(group_, 3, no_lists, 1, &other), "a list of cells to give is NULL");
  EXPECT_STREQ(ww_halo_explain(nullptr), "");
  EXPECT_EQ(other, nullptr);
  ww_halo_free(nullptr);
}

TEST_F(CHalo, WrongArgumentsAreRefusedAndTheFieldsAreAsBefore) {
  ww_halo* other = nullptr;
  std::int64_t box[2] = {};
  const std::int64_t small[] = {3, 3};
  expect_refused(ww_grid_box(0, shape, 1, 0, box, box), "0 dimensions: there can be 1 to 4");
  expect_refused(ww_grid_box(2, shape, 2, 2, box, box), "there is no rank 2 of 2");
  expect_refused(ww_halo_grid(group_, 5, shape, ghost, periodic, first, shape, &other), "5 dimensions");
  expect_refused(ww_halo_grid(group_, 2, shape, ghost, periodic, first, small, &other), "the boxes leave cells out");
  const std::int64_t inside[] = {1}, outside[] = {3};
  const ww_halo_neighbor beyond[] = {{0, inside, 1, outside, 1}}, no_rank[] = {{7, inside, 1, inside, 1}};
  expect_refused(ww_halo_mesh(group_, 3, beyond, 1, &other), "rank 0: ");
  expect_refused(ww_halo_mesh(group_, 3, no_rank, 1, &other), "7");
  EXPECT_EQ(other, nullptr);

  std::vector<double> values = before();
  const ww_halo_field good = {values.data(), WW_FLOAT64, 1, 0};
  ASSERT_EQ(ww_halo_set_fields(halo_, &good, 1), WW_OK) << said();
  const auto refused = [&](void* address, int type, std::size_t components, const std::string& words) {
    const ww_halo_field field = {address, static_cast<ww_type>(type), components, 0};
    expect_refused(ww_halo_set_fields(halo_, &field, 1), words);
  };
  refused(nullptr, WW_FLOAT64, 1, "rank 0: an array of 30 elements is NULL");
  refused(values.data(), 99, 1, "there is no type 99");
  refused(values.data(), WW_FLOAT64, 0, "has no components");
  refused(values.data(), WW_FLOAT64, std::numeric_limits<std::size_t>::max() / 2, "more elements than there can be");
  const ww_halo_field twice[] = {good, good};
  expect_refused(ww_halo_set_fields(halo_, twice, 2), "fields 0 and 1 overlap");
  expect_refused(ww_halo_finish(halo_), "finish() without start()");
  expect_refused(ww_halo_tune(halo_, 0), "a time above 0");
  expect_refused(ww_halo_use(halo_, WW_HALO_MIXED), "there is no variant 8");
  ww_halo_totals totals{};
  expect_refused(ww_halo_counts(halo_, static_cast<ww_halo_variant>(9), &totals), "there is no variant 9");
  ww_halo_side side{};
  std::size_t sides = 0;
  ASSERT_EQ(ww_halo_side_count(halo_, &sides), WW_OK);
  expect_refused(ww_halo_side_at(halo_, sides, &side), "there is no side " + std::to_string(sides));
  const std::vector<ww_halo_variant> wrong(sides, WW_HALO_MIXED), one(sides, WW_HALO_WHOLE_FIELD);
  expect_refused(ww_halo_use_sides(halo_, wrong.data(), sides), "there is no variant 8");
  expect_refused(ww_halo_use_sides(halo_, one.data(), sides - 1), "variants of a halo exchange for");
  EXPECT_EQ(ww_halo_use_sides(halo_, one.data(), sides), WW_OK) << said();
  ASSERT_EQ(ww_halo_side_at(halo_, 0, &side), WW_OK);
  EXPECT_EQ(side.variant, WW_HALO_WHOLE_FIELD);
  EXPECT_GT(side.cells, 0u);
  EXPECT_EQ(ww_halo_use(halo_, WW_HALO_DIRECT), WW_UNAVAILABLE);
  EXPECT_EQ(said(), "the fields are in host memory, which no kernel serves");

  ASSERT_EQ(ww_halo_exchange(halo_, nullptr), WW_OK) << said();
  EXPECT_EQ(values, after());
}

TEST_F(CHalo, FieldsOnAGpuAreExchangedOnAStream) {
  void* memory = nullptr;
  ww_stream* stream = nullptr;
  const std::size_t bytes = cells * sizeof(double);
  ASSERT_EQ(ww_gpu_allocate(group_, 0, bytes, &memory), WW_OK) << said();
  ASSERT_EQ(ww_stream_create(group_, 0, &stream), WW_OK) << said();
  const ww_halo_field field = {memory, WW_FLOAT64, 1, 0};
  ASSERT_EQ(ww_halo_set_fields(halo_, &field, 1), WW_OK) << said();
  for (const ww_halo_variant variant : {WW_HALO_DIRECT, WW_HALO_WHOLE_FIELD}) {
    ASSERT_EQ(ww_gpu_copy(group_, memory, before().data(), bytes), WW_OK) << said();
    ASSERT_EQ(ww_halo_use(halo_, variant), WW_OK) << said();
    ASSERT_EQ(ww_halo_start(halo_, stream), WW_OK) << said();
    ASSERT_EQ(ww_halo_finish(halo_), WW_OK) << said();
    ASSERT_EQ(ww_stream_synchronize(group_, stream), WW_OK) << said();
    std::vector<double> values(cells);
    ASSERT_EQ(ww_gpu_copy(group_, values.data(), memory, bytes), WW_OK) << said();
    EXPECT_EQ(values, after());
    int used = -1;
    ASSERT_EQ(ww_halo_variant_in_use(halo_, &used), WW_OK) << said();
    EXPECT_EQ(used, variant);
  }
  ww_halo_totals totals{};
  ASSERT_EQ(ww_halo_counts(halo_, WW_HALO_WHOLE_FIELD, &totals), WW_OK) << said();
  EXPECT_EQ(totals.exchanges, 1u);
  EXPECT_EQ(totals.bus_copies, 2u);
  EXPECT_EQ(totals.bus_bytes, 2 * bytes);
  ww_halo_free(halo_);
  halo_ = nullptr;
  ww_stream_free(stream);
  ASSERT_EQ(ww_gpu_free(group_, memory), WW_OK) << said();
}

}  // namespace
}  // namespace waywiser
