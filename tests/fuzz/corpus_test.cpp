#include <gtest/gtest.h>

#include <filesystem>

#include "tests/fuzz/targets.hpp"
#include "waywiser/base/json.hpp"

namespace waywiser::fuzz {
namespace {

constexpr waywiser::Bytes largest_input = 1 << 20;

class FuzzCorpus : public testing::TestWithParam<Target> {};

// Inputs that once led fuzzers to new code, or broke something.
TEST_P(FuzzCorpus, EveryInputKeepsThePromises) {
  int inputs = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(WAYWISER_SOURCE_DIR "/tests/fuzz/corpus/") += GetParam().name)) {
    SCOPED_TRACE(entry.path().filename());
    const std::string input = read_text(entry.path(), largest_input);
    EXPECT_NO_THROW(GetParam().run(std::as_bytes(std::span(input))));
    ++inputs;
  }
  EXPECT_GT(inputs, 0);
}

INSTANTIATE_TEST_SUITE_P(Targets, FuzzCorpus, testing::ValuesIn(targets().begin(), targets().end()),
                         [](const auto& target) { return std::string(target.param.name); });

}  // namespace
}  // namespace waywiser::fuzz
