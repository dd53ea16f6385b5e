// How a GPU's memory is divided among groups.
#include <gtest/gtest.h>

#include <vector>

#include "tests/collective/gpu_sums.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/collective/fused/fused_works.hpp"
#include "waywiser/collective/gpu/group_memory.hpp"
#include "waywiser/comm/peer_memory/receive_arena.hpp"

namespace waywiser {
namespace {

// The number of groups of that size for which there is room.
std::vector<GroupMemory> as_many_as_fit(int ranks) {
  std::vector<GroupMemory> all;
  for (Bytes left = ReceiveArena::limit;;) {
    const Bytes share = all.empty() ? left - 2 * mib * static_cast<Bytes>(ranks + 4) : left / 4;
    const auto memory = GroupMemory::within(ranks, share, left);
    if (!memory) return all;
    left -= memory->bytes();
    all.push_back(*memory);
  }
}

TEST(GroupMemoryOf, ManyGroupsFitIntoTheArenaAndTheFirstHasMost) {
  for (int ranks = 2; ranks <= 8; ++ranks) {
    const auto all = as_many_as_fit(ranks);
    EXPECT_GE(all.size(), 9u) << ranks << " ranks";
    Bytes sum = 0;
    for (const GroupMemory& each : all) sum += each.bytes();
    EXPECT_LE(sum, ReceiveArena::limit);
    EXPECT_GT(all.front().bytes(), ReceiveArena::limit / 3) << ranks << " ranks";
    EXPECT_EQ(all.front().fused.ll128_bytes, mib) << ranks << " ranks";
  }
}

TEST(GroupMemoryOf, WhatIsSmallIsOneKernelInEveryGroup) {
  for (int ranks = 2; ranks <= 8; ++ranks)
    for (const GroupMemory& memory : as_many_as_fit(ranks)) {
      CollectiveCall call;
      call.ranks = ranks;
      call.count = 8192;
      for (const auto operation : {Collective::all_reduce, Collective::reduce, Collective::broadcast,
                                   Collective::all_gather, Collective::reduce_scatter, Collective::all_to_all}) {
        call.operation = operation;
        for (const bool ll128 : {true, false}) {
          const fused::Method method = fused::default_method(call, call.count, ll128);
          EXPECT_EQ(FusedCollective::pieces(call, DataType::uint8, method, memory.fused), 1u)
              << name(operation) << " of " << ranks << " ranks by " << name(method);
        }
      }
      EXPECT_GE(memory.messages.ll_channels * messages::least_ll_piece, 8192u);
      EXPECT_GE(memory.messages.ll128_piece() * messages::channels, 8192u);
    }
}

TEST(GroupMemoryOf, OnlyLargeOperationsTakeMoreAndTheFormulaSaysHowMuch) {
  EXPECT_EQ(group_bytes_apart(8, mib), 0u);
  EXPECT_EQ(group_bytes_apart(12, 100 * mib), 0u);
  for (int ranks = 2; ranks <= 8; ++ranks) {
    EXPECT_GT(group_bytes_apart(ranks, mib + 1), 190 * mib);
    EXPECT_LT(group_bytes_apart(ranks, 1000 * mib), 260 * mib);
  }
}

}  // namespace
}  // namespace waywiser
