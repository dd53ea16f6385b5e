#include "waywiser/comm/bootstrap/text_gather.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <future>

#include "tests/comm/with_runtime_folder.hpp"
#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

class TextGather : public WithRuntimeFolder {
 protected:
  static auto come(int rank, int size, std::string text, Seconds patience = 20) {
    const Launch launch{"test", rank, size, "text-job", {}, "a secret of the test"};
    return std::async(std::launch::async, [=] { return gather_texts(launch, text, Deadline::in(patience)); });
  }
};

TEST_F(TextGather, RankZeroHasAllInOrder) {
  const std::string large(1 << 20, 'x');
  auto second = come(2, 3, large);
  auto first = come(1, 3, "");
  auto root = come(0, 3, "zero");
  EXPECT_EQ(root.get(), (std::vector<std::string>{"zero", "", large}));
  EXPECT_TRUE(first.get().empty());
  EXPECT_TRUE(second.get().empty());
}

TEST_F(TextGather, AloneAndTooLong) {
  EXPECT_EQ(come(0, 1, "only").get(), std::vector<std::string>{"only"});
  EXPECT_THROW(come(0, 1, std::string((1 << 20) + 1, 'x')).get(), Error);
}

TEST_F(TextGather, WhoIsMissingIsNamed) {
  try {
    come(0, 2, "zero", 0.05).get();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::timeout);
    EXPECT_NE(std::string(error.what()).find("1 of 2 ranks did not come"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace waywiser
