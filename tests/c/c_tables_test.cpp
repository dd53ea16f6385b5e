#include <gtest/gtest.h>

#include <string>

#include "tests/c/error_text.hpp"
#include "tests/table/made_up_table.hpp"
#include "waywiser/c/waywiser.h"

namespace waywiser {
namespace {

// One rank, and a shuffle of keys and texts into two parts.
class CTables : public testing::Test {
 protected:
  void SetUp() override {
    ww_join_options options{};
    options.size = sizeof options;
    options.timeout = 20;
    ASSERT_EQ(ww_join(&options, &group_), WW_OK) << c_error_text();
    ASSERT_EQ(ww_shuffle_begin(group_, &schema_.get(), 2, 0, 0, 0, "", &shuffle_), WW_OK) << c_error_text();
  }
  void TearDown() override {
    ww_shuffle_free(shuffle_);
    EXPECT_EQ(ww_close(group_), WW_OK) << c_error_text();
    ww_group_free(group_);
  }
  static void expect_refused(int code, const std::string& words) {
    EXPECT_EQ(code, WW_INVALID_INPUT) << words;
    EXPECT_NE(c_error_text().find(words), std::string::npos) << c_error_text();
  }

  MadeUpSchema schema_{KeysAndTexts::columns({})};
  Batch batch_ = made_batch(KeysAndTexts::columns({5, 6, 7}), 3);
  ww_group* group_ = nullptr;
  ww_shuffle* shuffle_ = nullptr;
};

TEST_F(CTables, WhatIsInsertedStaysTheCallersAndWhatComesIsIts) {
  ASSERT_EQ(ww_shuffle_insert(shuffle_, &batch_.array(), 1), WW_OK) << c_error_text();
  EXPECT_NE(batch_.array().release, nullptr);
  batch_ = {};
  ASSERT_EQ(ww_shuffle_finish(shuffle_), WW_OK) << c_error_text();
  int part = -1;
  ASSERT_EQ(ww_shuffle_next(shuffle_, &part), WW_OK) << c_error_text();
  EXPECT_EQ(part, 0);
  ArrowArray none{}, array{}, last{};
  ASSERT_EQ(ww_shuffle_extract(shuffle_, 0, &none), WW_OK) << c_error_text();
  EXPECT_EQ(none.release, nullptr);
  ASSERT_EQ(ww_shuffle_extract(shuffle_, 1, &array), WW_OK) << c_error_text();
  ASSERT_EQ(ww_shuffle_extract(shuffle_, 1, &last), WW_OK) << c_error_text();
  EXPECT_EQ(last.release, nullptr);
  expect_refused(ww_shuffle_extract(shuffle_, 1, &last), "part 1 is extracted already");
  ASSERT_EQ(ww_shuffle_next(shuffle_, &part), WW_OK) << c_error_text();
  EXPECT_EQ(part, -1);
  ww_shuffle_free(shuffle_);
  shuffle_ = nullptr;
  EXPECT_EQ(KeysAndTexts::keys_of(Batch(array)), (std::vector<std::int64_t>{5, 6, 7}));
}

TEST_F(CTables, RefuseWhatIsNoArgument) {
  ww_shuffle* shuffle = nullptr;
  int part = 0;
  const int columns[] = {-1, 2};
  expect_refused(ww_shuffle_begin(nullptr, &schema_.get(), 1, 0, 0, 0, nullptr, &shuffle), "the group is NULL");
  expect_refused(ww_shuffle_begin(group_, nullptr, 1, 0, 0, 0, nullptr, &shuffle), "the schema is NULL");
  expect_refused(ww_shuffle_begin(group_, &schema_.get(), -1, 0, 0, 0, nullptr, &shuffle), "-1 parts are not in 1");
  expect_refused(ww_shuffle_begin(group_, &schema_.get(), 1, 0, 0, 1, nullptr, &shuffle), "come together");
  expect_refused(ww_shuffle_begin(group_, &schema_.get(), 1, 0, 0, 0, nullptr, nullptr), "the place for the shuffle");
  expect_refused(ww_shuffle_insert(nullptr, &batch_.array(), 0), "the shuffle is NULL");
  expect_refused(ww_shuffle_insert(shuffle_, nullptr, 0), "the batch is NULL");
  expect_refused(ww_shuffle_insert(shuffle_, &batch_.array(), 2), "part 2 is not in 0 to 1");
  expect_refused(ww_shuffle_insert_by(shuffle_, &batch_.array(), columns, 1), "no column -1 of a table of 2");
  expect_refused(ww_shuffle_insert_by(shuffle_, &batch_.array(), columns + 1, 1), "no column 2 of a table of 2");
  expect_refused(ww_shuffle_insert_by(shuffle_, &batch_.array(), nullptr, 1), "the array of columns is NULL");
  expect_refused(ww_shuffle_insert_by(shuffle_, &batch_.array(), columns, 0), "no key is given");
  expect_refused(ww_shuffle_next(shuffle_, &part), "this rank has not completed");
  expect_refused(ww_shuffle_take_all(shuffle_), "this rank has not completed");
  expect_refused(ww_shuffle_extract(shuffle_, 0, nullptr), "the place for the batch");
  ArrowArray released{}, without = batch_.array();
  expect_refused(ww_shuffle_insert(shuffle_, &released, 0), "the batch has been released");
  without.children = nullptr;
  expect_refused(ww_shuffle_insert(shuffle_, &without, 0), "no columns or no rows");
  ArrowSchema columnless = schema_.get();
  columnless.children = nullptr;
  expect_refused(ww_shuffle_begin(group_, &columnless, 1, 0, 0, 0, nullptr, &shuffle),
                 "a schema of a table was expected");
  ASSERT_EQ(ww_shuffle_finish(shuffle_), WW_OK);
  ASSERT_EQ(ww_shuffle_take_all(shuffle_), WW_OK) << "nothing of all this has moved";
}

}  // namespace
}  // namespace waywiser
