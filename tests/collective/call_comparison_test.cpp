// Calls that are carried out by code that does not compare them.
#include "waywiser/collective/gpu/call_comparison.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/comm/test_ranks.hpp"
#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

// The errors of a group's ranks if rank 4 makes another call.
std::vector<std::string> compared(const Call& usual, const Call& unusual) {
  constexpr int size = 9;
  const TestRanks ranks(size);
  std::vector<TestRanks::Process> processes;
  for (int rank = 0; rank < size; ++rank)
    processes.push_back(ranks.start(rank, [&](int self) {
      const auto session = std::make_shared<Session>(ranks.options(self));
      Members members{0, self, std::vector<int>(size)};
      std::iota(members.world.begin(), members.world.end(), 0);
      const Call& call = self == 4 ? unusual : usual;
      const auto comparison =
          std::make_shared<CallComparison>(*session, std::make_shared<const Members>(std::move(members)), call);
      session->start(comparison);
      session->wait(call, [&] { return !comparison->under_way; }, [&] { return comparison->progress_text(); });
    }));
  std::vector<std::string> said;
  for (const TestRanks::Process& process : processes) said.push_back(TestRanks::wait(process));
  return said;
}

Call sum_of(std::uint64_t count, DataType type = DataType::float32, ReduceOp op = ReduceOp::sum) {
  Call call{CallKind::all_reduce, type, op};
  call.sequence = 1;
  call.count = count;
  return call;
}

TEST(CallComparison, LikeCallsGoOn) {
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg})
    EXPECT_EQ(compared(sum_of(100, DataType::float16, op), sum_of(100, DataType::float16, op)),
              std::vector<std::string>(9));
}

// Faults: gpus W
TEST(CallComparison, UnlikeOnesAreToldAtAllRanks) {
  Call to_root = sum_of(100);
  to_root.kind = CallKind::reduce;
  to_root.root = 2;
  for (const Call& unusual : {sum_of(80), sum_of(100, DataType::int32), sum_of(100, DataType::float64),
                              sum_of(100, DataType::float32, ReduceOp::avg), to_root})
    for (const std::string& said : compared(sum_of(100), unusual)) {
      const bool names_both = said.find(" is in ") != std::string::npos && said.find("rank ") != std::string::npos;
      EXPECT_TRUE(names_both || said.find("bytes where") != std::string::npos) << said;
    }
}

}  // namespace
}  // namespace waywiser
