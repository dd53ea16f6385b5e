#include "waywiser/base/seal.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

std::span<const std::byte> said(const std::string& text) { return std::as_bytes(std::span(text)); }

class SealTest : public testing::Test {
 protected:
  static Seal::Key key(int number) {
    Seal::Key made{};
    made.fill(static_cast<std::byte>(number));
    return made;
  }
  static std::span<const std::byte> of(const Seal::Mark& mark) { return mark; }

  Seal here_{key(1), key(2)}, there_{key(2), key(1)};
};

TEST_F(SealTest, WhatIsSentIsKnown) {
  for (const std::string text : {"one", "two", "two", ""})
    EXPECT_TRUE(there_.check_next(said(text), here_.next_mark(said(text))));
  EXPECT_TRUE(here_.check_next(said("back"), there_.next_mark(said("back"))));
}

TEST_F(SealTest, WhatIsChangedRepeatedLeftOutOrSentBackIsNot) {
  const auto first = here_.next_mark(said("one"));
  EXPECT_FALSE(Seal(there_).check_next(said("onE"), first));
  EXPECT_FALSE(Seal(there_).check_next(said("one"), of(first).first(8)));
  EXPECT_FALSE(Seal(here_).check_next(said("one"), first));  // of the other direction
  EXPECT_FALSE(Seal(key(2), key(3)).check_next(said("one"), first));
  const auto second = here_.next_mark(said("one"));
  EXPECT_FALSE(Seal(there_).check_next(said("one"), second));  // the first is missing
  EXPECT_TRUE(there_.check_next(said("one"), first));
  EXPECT_FALSE(Seal(there_).check_next(said("one"), first));
  EXPECT_TRUE(there_.check_next(said("one"), second));
}

TEST_F(SealTest, AnotherProcessGoesOnWithIt) {
  EXPECT_TRUE(there_.check_next(said("one"), here_.next_mark(said("one"))));
  Seal further = Seal::unpack(there_.packed());
  EXPECT_TRUE(further.check_next(said("two"), here_.next_mark(said("two"))));
  EXPECT_THROW(Seal::unpack(std::vector<std::byte>(3)), Error);
}

}  // namespace
}  // namespace waywiser
