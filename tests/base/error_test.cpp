#include "waywiser/base/error.hpp"

#include <gtest/gtest.h>

namespace waywiser {
namespace {

TEST(Error, ARefusedInputIsOneLineWhateverItHolds) {
  try {
    refuse_input("file", "'a\n\tb\x1b[2J' is no name");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_input);
    EXPECT_STREQ(error.what(), "file: 'a  b [2J' is no name");
  }
}

TEST(Error, TextFromOutsideIsQuotedInOneLine) {
  EXPECT_EQ(quoted("lat\ncy", 64), "'lat cy'");
  EXPECT_EQ(quoted("h\x7fst0 \xc2\x9b[2J \xc3\xa9\xc2", 64), "'h st0  [2J \xc3\xa9\xc2'");
  EXPECT_EQ(quoted("abc", 2), "'ab'");
  EXPECT_EQ(quoted("", 2), "''");
}

}  // namespace
}  // namespace waywiser
