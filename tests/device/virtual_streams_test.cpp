// Streams and events of virtual GPUs.
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "tests/conformance/cases.hpp"
#include "tests/device/virtual_errors.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/device/host_stream.hpp"
#include "waywiser/device/trap.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"

namespace waywiser {
namespace {

TEST(VirtualGpu, AnErrorOfTheWorkIsThrownBySynchronizeAndOnlyOnce) {
  const auto platform = open_virtual_platform(four_gpus());
  const auto stream = platform->open_stream(gpu(0));
  const auto other = platform->open_stream(gpu(1));
  const auto event = platform->create_event(gpu(0));
  bool later = false;
  stream->call([] { throw Error(ErrorKind::device, "made up"); });
  stream->call([&] { later = true; });
  stream->record(*event);
  other->wait(*event);
  EXPECT_EQ(message_of([&] { stream->synchronize(soon()); }, ErrorKind::device), "made up");
  EXPECT_FALSE(later);
  EXPECT_NE(message_of([&] { other->synchronize(soon()); }, ErrorKind::device).find("gpu0"), std::string::npos);
  stream->call([&] { later = true; });
  stream->synchronize(soon());
  EXPECT_TRUE(later);
}

// An event that can no longer be recorded must not be waited for.
TEST(VirtualGpu, AnEventOfAGpuWhoseKernelHasTrappedIsNotWaitedFor) {
  const auto platform = open_virtual_platform(four_gpus());
  const auto stream = platform->open_stream(gpu(0));
  const auto event = platform->create_event(gpu(0));
  Kernel kernel{1, 1, {}, {}};
  kernel.body = [](const ThreadContext&) { throw Trap(); };
  stream->launch(kernel);
  message_of([&] { stream->synchronize(soon()); }, ErrorKind::device);
  message_of([&] { stream->record(*event); }, ErrorKind::device);
  EXPECT_NE(message_of([&] { event->synchronize(soon()); }, ErrorKind::device).find("has trapped"), std::string::npos);
}

TEST(VirtualGpu, EventsOrderStreams) {
  for (const std::uint64_t seed : {0, 1, 2, 3, 4, 5}) {
    VirtualMachine machine = four_gpus();
    machine.reorder_seed = seed;
    const auto platform = open_virtual_platform(machine);
    const auto first = platform->open_stream(gpu(0));
    const auto second = platform->open_stream(gpu(1));
    const auto event = platform->create_event(gpu(0));
    std::string order;
    for (int i = 0; i < 5; ++i) first->call([&] { order += 'a'; });
    first->record(*event);
    second->wait(*event);
    second->call([&] { order += 'b'; });
    second->synchronize(soon());
    EXPECT_TRUE(event->done());
    EXPECT_EQ(order, "aaaaab");
  }
}

TEST(VirtualGpu, ANewRecordingDoesNotChangeAnEarlierWait) {
  VirtualMachine machine = four_gpus();
  machine.reorder_seed = 1;
  const auto platform = open_virtual_platform(machine);
  const auto first = platform->open_stream(gpu(0));
  const auto second = platform->open_stream(gpu(1));
  const auto event = platform->create_event(gpu(0));
  second->wait(*event);  // never recorded: nothing to wait for
  first->record(*event);
  second->wait(*event);
  const Memory flag = platform->allocate(host(0), 8, Allocation::pinned);
  first->wait_value(flag.region(), 1);
  first->record(*event);  // waits for a flag that is still 0
  second->synchronize(soon());
  EXPECT_FALSE(event->done());
  first->call([] {});
  flag.region().data[0] = std::byte{1};
  first->synchronize(soon());
  EXPECT_TRUE(event->done());
}

// The order in which work of three streams runs.
std::string interleaving(std::uint64_t seed) {
  VirtualMachine machine = four_gpus();
  machine.reorder_seed = seed;
  const auto platform = open_virtual_platform(machine);
  std::vector<std::unique_ptr<Stream>> streams;
  std::string order;
  for (int i = 0; i < 3; ++i) {
    streams.push_back(platform->open_stream(gpu(i)));
    for (int j = 0; j < 6; ++j) streams.back()->call([&order, i] { order += static_cast<char>('a' + i); });
  }
  for (const auto& stream : streams) stream->synchronize(soon());
  return order;
}

TEST(VirtualGpu, ASeedGivesTheSameInterleavingEachTime) {
  EXPECT_EQ(interleaving(7), interleaving(7));
  EXPECT_NE(interleaving(7), interleaving(8));
  EXPECT_NE(interleaving(7), "aaaaaabbbbbbcccccc");
}

TEST(VirtualGpu, TimeOfADelayIsBetweenEvents) {
  VirtualMachine machine = four_gpus();
  machine.delay = 0.002;
  const auto platform = open_virtual_platform(machine);
  const auto stream = platform->open_stream(gpu(0));
  const auto first = platform->create_event(gpu(0));
  const auto second = platform->create_event(gpu(0));
  stream->record(*first);
  stream->call([] {});
  stream->record(*second);
  second->synchronize(soon());
  EXPECT_GE(second->since(*first), 0.004);
}

TEST(VirtualGpu, FlagsPassDataBetweenGpus) {
  const auto platform = open_virtual_platform(four_gpus());
  const Memory flag = platform->allocate(host(0), 8, Allocation::pinned);
  const auto first = platform->open_stream(gpu(0));
  const auto second = platform->open_stream(gpu(3));
  int value = 0;
  int seen = 0;
  second->wait_value(flag.region(), 3);
  second->call([&] { seen = value; });
  first->call([&] { value = 42; });
  first->write_value(flag.region(), 3);
  second->synchronize(soon());
  first->synchronize(soon());
  EXPECT_EQ(seen, 42);
}

TEST(VirtualGpu, StreamsMayOutliveTheirPlatform) {
  std::unique_ptr<Stream> stream;
  Memory memory;
  {
    const auto platform = open_virtual_platform(four_gpus());
    stream = platform->open_stream(gpu(0));
    memory = platform->allocate(gpu(0), 64, Allocation::gpu);
  }
  std::array<std::byte, 32> given, taken{};
  for (std::size_t i = 0; i < given.size(); ++i) given[i] = static_cast<std::byte>(i + 1);
  const auto on_host = [](std::array<std::byte, 32>& array) { return Region{array.data(), array.size(), host(0)}; };
  stream->copy(memory.region().slice(32, 32), on_host(given));
  stream->copy(memory.region().slice(0, 32), memory.region().slice(32, 32));
  stream->copy(on_host(taken), memory.region().slice(0, 32));
  stream->synchronize(soon());
  EXPECT_EQ(taken, given);
}

}  // namespace
}  // namespace waywiser
