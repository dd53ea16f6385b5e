#include <gtest/gtest.h>

#include "waywiser/base/error.hpp"
#include "waywiser/collective/gpu/gpu_algorithm.hpp"
#include "waywiser/policy/chooser.hpp"

namespace waywiser {
namespace {

CollectiveRow row(std::string operation, std::string memory, int ranks, Bytes from, Bytes to, std::string way) {
  CollectiveRow row;
  row.operation = std::move(operation);
  row.memory = std::move(memory);
  row.ranks = ranks;
  row.from_bytes = from;
  row.to_bytes = to;
  row.way = std::move(way);
  return row;
}

std::string found(const PlannedGpuAlgorithms& ways, Collective operation, Bytes bytes) {
  const auto all = [](const GpuAlgorithm&) { return true; };
  const GpuAlgorithm* way = ways.find(operation, bytes, all, [](const GpuAlgorithm&) { return ""; });
  return way == nullptr ? "nothing" : text(*way);
}

TEST(PlannedGpuAlgorithms, AreThoseOfTheOperationTheRanksAndTheSize) {
  Plan plan;
  plan.collectives = {row("all_reduce", "host", 2, 0, 1 << 30, "ring"), row("all_reduce", "gpu", 2, 0, 1000, "LL"),
                      row("all_reduce", "gpu", 2, 1001, 5000, "two_shot(blocks=64,threads=512)"),
                      row("all_reduce", "gpu", 4, 0, 1 << 30, "nccl"), row("all_gather", "gpu", 2, 0, 1000, "host")};
  const Chooser chooser(plan);
  const PlannedGpuAlgorithms two(&chooser, 2), four(&chooser, 4), none(nullptr, 2);
  EXPECT_EQ(found(two, Collective::all_reduce, 1000), "LL");
  EXPECT_EQ(found(two, Collective::all_reduce, 1001), "two_shot(blocks=64,threads=512)");
  EXPECT_EQ(found(two, Collective::all_reduce, 5001), "nothing");
  EXPECT_EQ(found(two, Collective::reduce, 1000), "LL") << "as all_reduce, whose half it is";
  EXPECT_EQ(found(two, Collective::all_gather, 8), "host");
  EXPECT_EQ(found(two, Collective::broadcast, 8), "nothing");
  EXPECT_EQ(found(four, Collective::all_reduce, 5001), "nccl");
  EXPECT_EQ(found(none, Collective::all_reduce, 8), "nothing");
}

TEST(PlannedGpuAlgorithms, AWayThatNobodyKnowsIsRefused) {
  Plan plan;
  plan.collectives = {row("broadcast", "gpu", 2, 0, 1000, "two_shot(blocks=64)")};
  const Chooser chooser(plan);
  try {
    const PlannedGpuAlgorithms two(&chooser, 2);
    FAIL() << "a grid has blocks and threads";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_input);
    EXPECT_STREQ(error.what(), "plan: broadcast of gpu arrays has no way 'two_shot(blocks=64)'");
  }
  EXPECT_NO_THROW(PlannedGpuAlgorithms(&chooser, 4)) << "that row is not of its ranks";
}

}  // namespace
}  // namespace waywiser
