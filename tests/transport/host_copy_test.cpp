#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "waywiser/transport/host_copy/nontemporal_copy.hpp"
#include "waywiser/transport/host_copy/thread_team.hpp"

namespace waywiser {
namespace {

TEST(NontemporalCopy, EveryWidthAndAlignmentCopiesExactlyItsBytes) {
  std::vector<std::byte> from(600), to(600);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7 + 1);
  for (const unsigned width : {16u, 32u, 64u}) {
    if (!nontemporal_width_available(width)) continue;
    for (std::size_t start = 0; start < 70; start += 3) {
      for (const std::size_t bytes : {0u, 1u, 15u, 16u, 63u, 64u, 65u, 300u}) {
        std::fill(to.begin(), to.end(), std::byte{0xee});
        nontemporal_copy_of_width(width, to.data() + start, from.data() + 5, bytes);
        for (std::size_t i = 0; i < to.size(); ++i) {
          const bool inside = i >= start && i < start + bytes;
          ASSERT_EQ(to[i], inside ? from[i - start + 5] : std::byte{0xee}) << width << ' ' << start << ' ' << bytes;
        }
      }
    }
  }
}

TEST(ThreadTeam, EachMemberRunsOnceInEachRound) {
  ThreadTeam team(4);
  std::array<std::atomic<int>, 4> runs{};
  for (int round = 0; round < 200; ++round)
    team.run(1 + round % 4, [&](int member) { ++runs[static_cast<std::size_t>(member)]; });
  EXPECT_EQ(runs[0], 200);
  EXPECT_EQ(runs[1], 150);
  EXPECT_EQ(runs[2], 100);
  EXPECT_EQ(runs[3], 50);
}

TEST(ThreadTeam, EachShareRunsOnceHoweverLateItsMemberIs) {
  ThreadTeam team(3);
  std::array<int, 3> shares{};  // no atomics: a share that ran twice, or after its round, is a race for the sanitizers
  for (int round = 0; round < 20000; ++round)
    team.run(2 + round % 2, [&](int share) { ++shares[static_cast<std::size_t>(share)]; });
  EXPECT_EQ(shares, (std::array<int, 3>{20000, 20000, 10000}));
}

TEST(ThreadTeam, ItsMembersRunAtTheSameTime) {
  ThreadTeam team(3);
  std::atomic<int> arrived{0};
  team.run(3, [&](int) {
    ++arrived;
    while (arrived != 3) std::this_thread::yield();
  });
  EXPECT_EQ(arrived, 3);
}

}  // namespace
}  // namespace waywiser
