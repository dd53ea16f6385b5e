#include "waywiser/transport/bar_copy/bar_copy.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "waywiser/base/dynamic_library.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/kernels/pattern_body.hpp"
#include "waywiser/transport/bar_copy/gdrapi.hpp"

namespace waywiser {
namespace {

// The fake library maps host memory, so that memory stands for a GPU's here.
class BarCopy : public testing::Test {
 protected:
  void SetUp() override { ::setenv("WAYWISER_LIBGDRAPI", WAYWISER_FAKE_GDRAPI, 1); }
  void TearDown() override { ::unsetenv("WAYWISER_LIBGDRAPI"); }

  static int live() {
    const DynamicLibrary fake({WAYWISER_FAKE_GDRAPI});
    return fake.find<int()>("fake_gdr_live")();
  }

  std::unique_ptr<Platform> platform_ = open_host_platform();
  std::unique_ptr<Stream> stream_ = platform_->open_stream(host(0));
  std::vector<std::byte> far_ = std::vector<std::byte>(100000);
  std::vector<std::byte> near_ = std::vector<std::byte>(100000);
};

TEST_F(BarCopy, WritesAndReadsWhatLiesInTheMiddleOfPagesAndUnmapsAtTheEnd) {
  const Path there{"bar_copy", host(0), gpu(0), 1, {}};
  for (std::size_t i = 0; i < near_.size(); ++i) near_[i] = pattern_byte(1, i);
  {
    const auto transport = bar_copy_mechanism().open(there, {*platform_});
    transport->put({far_.data() + 7, 70001, gpu(0)}, {near_.data() + 3, 70001, host(0)}, *stream_);
    EXPECT_TRUE(std::equal(far_.begin() + 7, far_.begin() + 70008, near_.begin() + 3));
    EXPECT_EQ(far_[6], std::byte{0});
    EXPECT_EQ(far_[70008], std::byte{0});
    std::vector<std::byte> back(70001);
    transport->put({back.data(), back.size(), host(0)}, {far_.data() + 7, back.size(), gpu(0)}, *stream_);
    EXPECT_TRUE(std::equal(back.begin(), back.end(), near_.begin() + 3));
    EXPECT_EQ(live(), 2);  // one mapping served both
  }
  EXPECT_EQ(live(), 0);
}

TEST_F(BarCopy, SignalWritesTheFlag) {
  alignas(8) std::uint64_t flag = 0;
  const auto transport = bar_copy_mechanism().open({"bar_copy", host(0), gpu(0), 1, {}}, {*platform_});
  transport->signal({reinterpret_cast<std::byte*>(&flag), 8, gpu(0)}, 42, *stream_);
  EXPECT_EQ(flag, 42u);
}

TEST_F(BarCopy, ARefusedMappingIsAnErrorAndLeavesNothingPinned) {
  const GdrApi api;
  ASSERT_FALSE(api.why_not());
  const ConstRegion refused{reinterpret_cast<const std::byte*>(65536), 8, gpu(0)};
  EXPECT_THROW(BarMapping(api, nullptr, refused), Error);
  EXPECT_EQ(live(), 0);
}

TEST_F(BarCopy, ReasonsForPeople) {
  const auto why = [&](const Path& path) {
    return bar_copy_mechanism().why_unavailable(path, {*platform_}).value_or("");
  };
  EXPECT_EQ(why({"bar_copy", gpu(0), gpu(1), 1, {}}), "it serves copies between host memory and a GPU only");
  EXPECT_EQ(why({"bar_copy", host(0), gpu(0), 2, {}}), "memory of another process cannot be pinned for it");
  EXPECT_EQ(why({"bar_copy", host(0), gpu(0), 1, {}}), "there is no GPU");
  ::setenv("WAYWISER_LIBGDRAPI", "/nowhere/libgdrapi.so", 1);
  EXPECT_NE(GdrApi().why_not().value_or("").find("/nowhere/libgdrapi.so"), std::string::npos);
  ::setenv("WAYWISER_LIBGDRAPI", "libc.so.6", 1);
  EXPECT_EQ(GdrApi().why_not(), "libc.so.6 lacks calls of GDRCopy 2");
}

}  // namespace
}  // namespace waywiser
