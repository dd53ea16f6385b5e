#include "waywiser/bench/coalescing.hpp"

#include <gtest/gtest.h>

#include "tests/base/error_of.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"

namespace waywiser {
namespace {

// Samples of wrong bytes would throw.
void expect_measured(Platform& platform, Place source, Place destination) {
  CoalescedCopies copies(platform, source, destination, 64 << 10);
  for (const auto& [block, blocks] : {std::pair<Bytes, int>{1, 3}, {4096, 4}, {1000, 65}, {64 << 10, 1}}) {
    const CoalescingTimes times = copies.measure(block, blocks, 1e-3);
    EXPECT_GE(times.apart.samples, 5);
    EXPECT_EQ(times.apart.samples, times.gathered.samples);
    EXPECT_GT(times.apart.median, 0);
    EXPECT_GT(times.gathered.median, 0);
    EXPECT_GT(times.change.median, -100);
    EXPECT_LE(times.change.interval.low, times.change.median);
    EXPECT_GE(times.change.interval.high, times.change.median);
  }
}

TEST(Coalescing, BlocksOfHostMemoryArriveBothWays) {
  const std::unique_ptr<Platform> platform = open_host_platform();
  expect_measured(*platform, host(0), host(0));
}

TEST(Coalescing, BlocksOfGpusArriveBothWays) {
  VirtualMachine machine;
  machine.gpus = 2;
  const std::unique_ptr<Platform> platform = open_virtual_platform(machine);
  expect_measured(*platform, host(0), gpu(0));
  expect_measured(*platform, gpu(0), host(0));
  expect_measured(*platform, gpu(0), gpu(1));
  expect_measured(*platform, gpu(1), gpu(1));
}

TEST(Coalescing, WhatIsNotThereOrTooMuchIsRefused) {
  VirtualMachine machine;
  machine.gpus = 2;
  machine.no_peer_access = {{"", "a wall"}, {"a wall", ""}};
  const std::unique_ptr<Platform> platform = open_virtual_platform(machine);
  EXPECT_NE(error_of([&] { CoalescedCopies(*platform, gpu(0), gpu(1), 4096); }).find("a wall"), std::string::npos);
  CoalescedCopies copies(*platform, host(0), gpu(0), 4096);
  for (const auto& [block, blocks] : {std::pair<Bytes, int>{0, 4}, {1, 0}, {1, -1}, {1025, 4}, {Bytes{1} << 63, 2}})
    EXPECT_EQ(error_of([&] { copies.measure(block, blocks, 1e-3); }), "coalescing: " + std::to_string(blocks) +
                                                                          " blocks of " + format_bytes(block) +
                                                                          " bytes are none or above the limit");
}

}  // namespace
}  // namespace waywiser
