#include "waywiser/base/seal.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

const std::vector<std::byte> head = bytes_of("head");

struct Sealed {
  std::vector<std::byte> body;
  Seal::Mark mark;
};

Sealed sealed(Seal& seal, const std::string& text) {
  Sealed message{bytes_of(text), {}};
  message.mark = seal.close(head, message.body);
  return message;
}

// The opened content; nothing: it was not sealed there.
std::optional<std::string> opened(Seal seal, Sealed message, const std::vector<std::byte>& its_head = head) {
  if (!seal.open(its_head, message.body, message.mark)) return {};
  return std::string(reinterpret_cast<const char*>(message.body.data()), message.body.size());
}

class SealTest : public testing::Test {
 protected:
  static Seal::Key key(int number) {
    Seal::Key made{};
    made.fill(static_cast<std::byte>(number));
    return made;
  }
  std::optional<std::string> open(Seal& seal, Sealed message) {
    if (!seal.open(head, message.body, message.mark)) return {};
    return std::string(reinterpret_cast<const char*>(message.body.data()), message.body.size());
  }

  Seal here_{key(1), key(2)}, there_{key(2), key(1)};
};

TEST_F(SealTest, WhatIsSentIsKnown) {
  for (const std::string text : {"one", "two", "two", ""}) EXPECT_EQ(open(there_, sealed(here_, text)), text);
  EXPECT_EQ(open(here_, sealed(there_, "back")), "back");
}

TEST_F(SealTest, WhatIsSentCannotBeRead) {
  const std::string text(1000, 'a');
  const Sealed first = sealed(here_, text), second = sealed(here_, text);
  EXPECT_EQ(std::ranges::count(first.body, std::byte{'a'}) < 50, true);
  EXPECT_NE(first.body, second.body);
}

TEST_F(SealTest, WhatIsChangedRepeatedLeftOutOrSentBackIsNot) {
  const Sealed first = sealed(here_, "one");
  for (std::size_t bit = 0; bit < 8 * 3; ++bit) {
    Sealed changed = first;
    changed.body[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    EXPECT_EQ(opened(there_, changed), std::nullopt);
  }
  Sealed marked = first;
  marked.mark.back() ^= std::byte{1};
  EXPECT_EQ(opened(there_, marked), std::nullopt);
  EXPECT_EQ(opened(there_, first, bytes_of("heaD")), std::nullopt);
  EXPECT_EQ(opened(here_, first), std::nullopt);  // of the other direction
  EXPECT_EQ(opened(Seal(key(2), key(3)), first), std::nullopt);
  const Sealed second = sealed(here_, "one");
  EXPECT_EQ(opened(there_, second), std::nullopt);  // the first is missing
  EXPECT_EQ(open(there_, first), "one");
  EXPECT_EQ(opened(there_, first), std::nullopt);
  EXPECT_EQ(open(there_, second), "one");
}

TEST_F(SealTest, AMarkOfAnotherLengthIsNone) {
  Sealed first = sealed(here_, "one");
  EXPECT_FALSE(there_.open(head, first.body, std::span<const std::byte>(first.mark).first(8)));
}

TEST_F(SealTest, AnotherProcessGoesOnWithIt) {
  EXPECT_EQ(open(there_, sealed(here_, "one")), "one");
  Seal further = Seal::unpack(there_.packed());
  EXPECT_EQ(open(further, sealed(here_, "two")), "two");
  EXPECT_THROW(Seal::unpack(std::vector<std::byte>(3)), Error);
}

}  // namespace
}  // namespace waywiser
