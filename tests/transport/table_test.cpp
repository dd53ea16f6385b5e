#include <gtest/gtest.h>

#include <set>

#include "tests/conformance/cases.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/transport/split/split.hpp"
#include "waywiser/transport/transport.hpp"

namespace waywiser {
namespace {

class Reasons : public testing::Test {
 protected:
  std::string why(const std::string& mechanism, Place source, Place destination,
                  std::map<std::string, std::string> parameters = {}, int processes = 1) {
    const Path path{mechanism, source, destination, processes, std::move(parameters)};
    return why_unavailable(path, {*platform_}).value_or("available");
  }

  std::unique_ptr<Platform> platform_ = open_virtual_platform(conformance::four_gpus());
};

TEST(Mechanisms, HaveDifferentNames) {
  std::set<std::string_view> names;
  for (const Mechanism& row : mechanisms()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_EQ(find_mechanism(row.name)->name, row.name);
  }
  EXPECT_EQ(mechanisms().front().name, "copy_engine");
  EXPECT_EQ(find_mechanism("teleport"), nullptr);
}

TEST_F(Reasons, NoPeerAccess) {
  const std::string reason = "GPU 0 cannot map GPU 3 (no peer access: different root complexes)";
  EXPECT_EQ(why("copy_engine", gpu(0), gpu(3)), reason);
  EXPECT_EQ(why("sm_copy", gpu(0), gpu(3), {{"direction", "push"}, {"blocks", "1"}}), reason);
  EXPECT_EQ(why("relay", gpu(0), gpu(1), {{"via", "gpu3"}, {"chunk", "1M"}, {"depth", "2"}}), reason);
  EXPECT_EQ(
      why("split", gpu(0), gpu(3), {{"ways", "copy_engine+host_staged"}, {"share", "50+50"}, {"2.variant", "whole"}}),
      "copy_engine: " + reason);
  EXPECT_EQ(why("host_staged", gpu(0), gpu(3), {{"variant", "whole"}}), "available");
  const Path path{"copy_engine", gpu(0), gpu(3), 1, {}};
  try {
    open_transport(path, {*platform_});
    FAIL() << "opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unavailable);
    EXPECT_EQ(error.what(), "copy_engine: " + reason);
  }
}

TEST_F(Reasons, WrongPlaces) {
  EXPECT_EQ(why("copy_engine", host(0), host(0)), "no GPU takes part: host memories are copied by host_copy");
  EXPECT_EQ(why("host_staged", host(0), host(0), {{"variant", "whole"}}),
            "no GPU takes part: host memories are copied by host_copy");
  EXPECT_EQ(why("host_copy", host(0), gpu(1), {{"stores", "temporal"}, {"threads", "1"}}),
            "the host cannot touch the memory of gpu1");
  EXPECT_EQ(why("sm_copy", host(0), gpu(1), {{"direction", "push"}, {"blocks", "1"}}),
            "direction=push needs a GPU at the source");
  EXPECT_EQ(why("relay", gpu(0), gpu(1), {{"via", "gpu1"}, {"chunk", "1M"}, {"depth", "2"}}),
            "via=gpu1 is not a third GPU");
  EXPECT_EQ(why("copy_engine", gpu(0), gpu(4)), "there is no GPU 4 here (4 in the virtual_gpu back end)");
  EXPECT_EQ(why("teleport", gpu(0), gpu(1)), "there is no mechanism of this name");
}

TEST_F(Reasons, WrongParametersAreInputErrors) {
  EXPECT_THROW(why("sm_copy", gpu(0), gpu(1), {{"direction", "push"}}), Error);
  EXPECT_THROW(why("sm_copy", gpu(0), gpu(1), {{"direction", "up"}, {"blocks", "1"}}), Error);
  EXPECT_THROW(why("sm_copy", gpu(0), gpu(1), {{"direction", "push"}, {"blocks", "0"}}), Error);
  EXPECT_THROW(why("host_staged", gpu(0), gpu(1), {{"variant", "half"}}), Error);
  EXPECT_THROW(why("host_staged", gpu(0), gpu(1), {{"variant", "pipelined"}, {"chunk", "1"}, {"depth", "2"}}), Error);
  EXPECT_THROW(why("host_copy", host(0), host(0), {{"stores", "temporal"}, {"threads", "257"}}), Error);
  EXPECT_THROW(why("copy_engine", gpu(0), gpu(1), {{"handle", "magic"}}, 2), Error);
  for (const char* ways : {"copy_engine", "copy_engine+", "copy_engine+split", "copy_engine+teleport"})
    EXPECT_THROW(why("split", gpu(0), gpu(1), {{"ways", ways}, {"share", "50+50"}}), Error) << ways;
  for (const char* share : {"50", "50+49", "0+100", "a+b", "50+50+0"})
    EXPECT_THROW(why("split", gpu(0), gpu(1), {{"ways", "copy_engine+copy_engine"}, {"share", share}}), Error) << share;
}

TEST(Split, SharesAddUpAndAreWholePages) {
  for (const Bytes bytes : {Bytes{0}, Bytes{1}, Bytes{4096}, Bytes{1000000}, Bytes{5} << 30}) {
    const std::vector<Bytes> shares = split_bytes({60, 30, 10}, bytes);
    EXPECT_EQ(shares[0] + shares[1] + shares[2], bytes);
    EXPECT_EQ(shares[1] % 4096, 0u);
    EXPECT_EQ(shares[2] % 4096, 0u);
  }
  EXPECT_EQ(split_bytes({75, 25}, 1 << 20), (std::vector<Bytes>{(1 << 20) - 258048, 258048}));
}

}  // namespace
}  // namespace waywiser
