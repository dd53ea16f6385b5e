#include "waywiser/heap/device/packets.hpp"

#include <gtest/gtest.h>

#include "tests/heap/heap_ranks.hpp"

namespace waywiser {
namespace {

using one_sided::Comparison, one_sided::Scope;

constexpr Bytes all_read_at = 0, packets_at = 64, from_at = 4096, to_at = 6144;

// Blocks of bytes of many lengths and alignments around a ring; the bytes behind them stay.
TEST(HeapPackets, GoAroundARing) {
  EXPECT_EQ(problems_of(3,
                        [](Group& group, Place place) {
                          const Heap heap(group, "packets", place, 8192);
                          std::string wrong;
                          run_kernel(group, heap, [&](const HostOneSided& ranks) {
                            const int right = (ranks.rank() + 1) % 3, left = (ranks.rank() + 2) % 3;
                            auto* packets = ranks.at<block::LlPacket>(packets_at);
                            auto *given = ranks.at<std::uint8_t>(from_at), *taken = ranks.at<std::uint8_t>(to_at);
                            std::uint64_t number = 0;
                            for (const std::uint64_t count : {0ull, 1ull, 7ull, 8ull, 9ull, 64ull, 1999ull})
                              for (const unsigned shift : {0u, 1u, 4u}) {
                                ++number;
                                const auto value = [&](int rank, std::uint64_t i) {
                                  return static_cast<std::uint8_t>(i * 3 + number * 5 + static_cast<unsigned>(rank));
                                };
                                for (std::uint64_t i = 0; i < count; ++i) given[shift + i] = value(ranks.rank(), i);
                                taken[shift + count] = 77;
                                put_packets<Scope::block>(ranks, packets, given + shift, count, number, right);
                                wait_packets<Scope::block>(ranks, taken + shift, packets, count, number, left);
                                for (std::uint64_t i = 0; i < count; ++i)
                                  if (taken[shift + i] != value(left, i))
                                    wrong = "byte " + std::to_string(i) + " of " + std::to_string(count);
                                if (taken[shift + count] != 77) wrong = "the byte behind " + std::to_string(count);
                                ranks.signal_add(ranks.at<std::uint64_t>(all_read_at), 1,
                                                 left);  // its packets have been taken
                                ranks.wait_until(ranks.at<std::uint64_t>(all_read_at), Comparison::ge, number, right);
                              }
                          });
                          require_that(wrong.empty(), wrong);
                        }),
            "");
}

TEST(HeapPackets, ThoseThatNobodyPutsAreAnError) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  const auto problems = ranks.in_processes([](Group& group) {
    Heap heap(group, "none", gpu(group.rank()), 4096);
    heap.set_deadline(0.05);
    if (group.rank() == 0)
      run_kernel(group, heap, [](const HostOneSided& part) {
        int taken = 0;
        wait_packets(part, &taken, part.at<block::LlPacket>(packets_at), 1, 5, 1);
      });
  });
  EXPECT_NE(
      problems[0].find("rank 0, heap 'none': rank 1 did not change the word at offset 68 within 50.0 ms: it is 0, "
                       "and a kernel waits for 5"),
      std::string::npos)
      << problems[0];
}

}  // namespace
}  // namespace waywiser
