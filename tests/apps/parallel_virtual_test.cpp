// The tests of the same classes for hosts are in the same program.
#define apps apps_on_virtual_gpus
#include "tests/apps/parallel_virtual.hpp"
#undef apps

#include <gtest/gtest.h>

#include <atomic>

#include "tests/comm/test_ranks.hpp"

namespace {

namespace on_gpus = apps_on_virtual_gpus;

std::atomic<std::int64_t> filled{0};

struct CountedZero {
  CountedZero() { ++filled; }
  int value = 0;
};

// A group sends it in a stream of its own, and reads no bytes that were there before.
TEST(VirtualParallelLoops, AnArrayIsFilledWhenItIsMade) {
  waywiser::TestRanks ranks(1);
  ranks.platform_of = [](int) {
    waywiser::VirtualMachine machine;
    machine.gpus = on_gpus::virtual_gpus;
    return waywiser::open_virtual_platform(machine);
  };
  EXPECT_EQ(ranks.in_threads([](waywiser::Group& group) {
    constexpr std::int64_t size = 3'000'000;
    on_gpus::Processor processor(group);
    const on_gpus::Array<CountedZero> zeros(processor, size);
    const std::int64_t at_once = filled;
    waywiser::require_that(at_once == size, std::to_string(at_once) + " elements are filled");
  }),
            waywiser::no_problems);
}

}  // namespace
