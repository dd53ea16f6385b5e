#include <gtest/gtest.h>

#include <atomic>
#include <cstring>

#include "tests/conformance/cases.hpp"
#include "tests/device/virtual_errors.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/device/host_stream.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"
#include "waywiser/transport/transport.hpp"

namespace waywiser {
namespace {

using conformance::Bytewise;
using conformance::four_gpus;
using conformance::pattern;

TEST(VirtualGpuDeathTest, ItsMemoryFaultsWhenTheHostTouchesIt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto platform = open_virtual_platform(four_gpus());
  const Memory memory = platform->allocate(gpu(0), 64, Allocation::gpu);
  EXPECT_DEATH(memory.region().data[0] = std::byte{1}, "");
}

TEST(VirtualGpu, EachHasItsOwnLimitedMemory) {
  VirtualMachine machine = four_gpus();
  machine.memory = 1 << 20;
  const auto platform = open_virtual_platform(machine);
  EXPECT_EQ(platform->free_memory(gpu(1)), Bytes{1} << 20);
  Memory memory = platform->allocate(gpu(1), 1 << 19, Allocation::gpu);
  EXPECT_EQ(platform->free_memory(gpu(1)), Bytes{1} << 19);
  EXPECT_EQ(platform->free_memory(gpu(2)), Bytes{1} << 20);
  const std::string why = message_of([&] { platform->allocate(gpu(1), 1 << 20, Allocation::gpu); }, ErrorKind::device);
  EXPECT_NE(why.find("gpu1"), std::string::npos) << why;
  memory = Memory();
  EXPECT_EQ(platform->free_memory(gpu(1)), Bytes{1} << 20);
}

// As cudaFree and cudaFreeHost wait for the work of a GPU before they unmap memory.
TEST(VirtualGpu, WorkKeepsPinnedMemoryThatIsFreedBeforeItRuns) {
  const auto platform = open_virtual_platform(four_gpus());
  const Bytes bytes = 1 << 20;
  const Memory flag = platform->allocate(host(0), sizeof(std::uint64_t), Allocation::pinned);
  const Memory there = platform->allocate(gpu(0), bytes, Allocation::gpu);
  const Memory back = platform->allocate(host(0), bytes, Allocation::pinned);
  std::memset(flag.region().data, 0, sizeof(std::uint64_t));
  Memory given = platform->allocate(host(0), bytes, Allocation::pinned);
  std::memset(given.region().data, 7, bytes);
  const auto stream = platform->open_stream(gpu(0));
  stream->wait_value(flag.region().slice(0, sizeof(std::uint64_t)), 1);
  stream->copy(there.region().slice(0, bytes), given.region().slice(0, bytes));
  stream->copy(back.region().slice(0, bytes), there.region().slice(0, bytes));
  given = Memory();
  store_flag(flag.region().data, 1);
  stream->synchronize(soon());
  for (const Bytes at : {Bytes{0}, bytes / 2, bytes - 1}) EXPECT_EQ(back.region().data[at], std::byte{7});
}

TEST(VirtualGpu, AKernelKeepsMemoryThatIsFreedBeforeItRuns) {
  constexpr Bytes bytes = 1 << 20;
  const auto platform = open_virtual_platform(four_gpus());
  const auto stream = platform->open_stream(gpu(0));
  const Memory flag = platform->allocate(host(0), sizeof(std::uint64_t), Allocation::pinned);
  store_flag(flag.region().data, 0);
  stream->wait_value(flag.region(), 1);
  Memory given = platform->allocate(gpu(0), bytes, Allocation::gpu);
  std::byte* const data = stream->reach(given.region());
  bool ran = false;
  Kernel kernel{1, 1, {}, {}};
  kernel.body = [&](const ThreadContext&) {
    std::memset(data, 7, bytes);
    ran = true;
  };
  stream->launch(kernel);
  given = Memory();
  EXPECT_EQ(platform->allocated_memory(0), 0u);
  store_flag(flag.region().data, 1);
  stream->synchronize(soon());
  EXPECT_TRUE(ran);
}

TEST(VirtualGpu, KernelsNeedPeerAccessSwitchedOnAndPinnedHostMemory) {
  const auto platform = open_virtual_platform(four_gpus());
  const Memory peer = platform->allocate(gpu(1), 64, Allocation::gpu);
  const Memory pageable = platform->allocate(host(0), 64, Allocation::pageable);
  const Memory pinned = platform->allocate(host(0), 64, Allocation::pinned);
  const auto stream = platform->open_stream(gpu(0));
  const Stream& place = *stream;
  EXPECT_NE(message_of([&] { place.reach(peer.region()); }, ErrorKind::device).find("not switched on"),
            std::string::npos);
  platform->set_peer_access(0, 1, true);
  EXPECT_NE(place.reach(peer.region()), peer.region().data);
  EXPECT_NE(message_of([&] { place.reach(pageable.region()); }, ErrorKind::device).find("pinned"), std::string::npos);
  EXPECT_EQ(place.reach(pinned.region()), pinned.region().data);
  Region beyond = pinned.region();
  beyond.bytes = 1 << 20;
  message_of([&] { place.reach(beyond); }, ErrorKind::device);
}

TEST(VirtualGpu, WithoutPeerAccessACopyFailsWithTheReason) {
  const auto platform = open_virtual_platform(four_gpus());
  const Memory here = platform->allocate(gpu(0), 64, Allocation::gpu);
  const Memory there = platform->allocate(gpu(3), 64, Allocation::gpu);
  const auto stream = platform->open_stream(gpu(0));
  EXPECT_EQ(message_of([&] { stream->copy(there.region(), here.region()); }, ErrorKind::device),
            "GPU 0 cannot map GPU 3 (no peer access: different root complexes)");
  message_of([&] { platform->set_peer_access(0, 3, true); }, ErrorKind::unavailable);
}

TEST(VirtualGpu, AKernelRunsOnceForEachThread) {
  const auto platform = open_virtual_platform(four_gpus());
  const auto stream = platform->open_stream(gpu(0));
  std::atomic<int> runs{0};
  std::atomic<unsigned> sum{0};
  Kernel kernel{3, 5, {}, {}};
  kernel.body = [&](const ThreadContext& at) {
    ++runs;
    sum += at.block * at.threads + at.thread;
    EXPECT_EQ(at.blocks, 3u);
  };
  stream->launch(kernel);
  stream->synchronize(soon());
  EXPECT_EQ(runs, 15);
  EXPECT_EQ(sum, 15u * 14u / 2u);
}

TEST(VirtualGpu, ADeadGpuEndsInATimeoutThatNamesIt) {
  for (const std::uint64_t seed : {0, 1}) {
    VirtualMachine machine = four_gpus();
    machine.dead_gpu = 2;
    machine.reorder_seed = seed;
    const auto platform = open_virtual_platform(machine);
    const auto stream = platform->open_stream(gpu(2));
    const auto event = platform->create_event(gpu(2));
    stream->record(*event);
    EXPECT_FALSE(stream->done());
    for (const std::string& why : {message_of([&] { stream->synchronize(Deadline::in(0.01)); }, ErrorKind::timeout),
                                   message_of([&] { event->synchronize(Deadline::in(0.01)); }, ErrorKind::timeout)})
      EXPECT_NE(why.find("gpu2"), std::string::npos) << why;
  }
}

TEST(VirtualGpu, WorkThatWaitsForADeadGpuNamesIt) {
  VirtualMachine machine = four_gpus();
  machine.dead_gpu = 1;
  const auto platform = open_virtual_platform(machine);
  const Memory source = platform->allocate(gpu(0), 10000, Allocation::gpu);
  const Memory destination = platform->allocate(gpu(1), 10000, Allocation::gpu);
  const Path path{"host_staged", gpu(0), gpu(1), 1, {{"variant", "whole"}}};
  const auto transport = open_transport(path, {*platform});
  const auto stream = platform->open_stream(gpu(0));
  transport->put(destination.region(), source.region(), *stream);
  std::string why;
  const Deadline patience = Deadline::in(10);  // until gpu0 has come as far as the wait
  while (why.find("gpu1") == std::string::npos && !patience.passed())
    why = message_of([&] { transport->finish(*stream, Deadline::in(0.01)); }, ErrorKind::timeout);
  EXPECT_NE(why.find("gpu1"), std::string::npos) << why;
}

TEST(VirtualGpu, MatricesThatDoNotFitAreRefused) {
  VirtualMachine machine = four_gpus();
  machine.no_peer_access.pop_back();
  message_of([&] { open_virtual_platform(machine); }, ErrorKind::invalid_input);
  machine = four_gpus();
  machine.host_nodes = 0;
  message_of([&] { open_virtual_platform(machine); }, ErrorKind::invalid_input);
}

TEST(VirtualGpu, WrongHandlesAreRefused) {
  const auto platform = open_virtual_platform(four_gpus());
  const Memory memory = platform->allocate(gpu(0), 5000, Allocation::gpu_mapped);
  MemoryHandle handle = platform->export_memory(memory);
  handle.bytes = 1 << 20;
  message_of([&] { platform->open_memory(handle); }, ErrorKind::device);
  handle = platform->export_memory(memory);
  handle.place = gpu(9);
  message_of([&] { platform->open_memory(handle); }, ErrorKind::unavailable);
  handle = platform->export_memory(memory);
  handle.kind = HandleKind::cuda_ipc;
  message_of([&] { platform->open_memory(handle); }, ErrorKind::device);
}

TEST(VirtualGpu, AnotherMappingShowsTheSameBytes) {
  const auto platform = open_virtual_platform(four_gpus());
  const auto other = open_virtual_platform(four_gpus());
  const Memory memory = platform->allocate(gpu(2), 5000, Allocation::gpu);
  const Memory opened = other->open_memory(platform->export_memory(memory));
  Bytewise(*platform).write(memory.region(), pattern(5000, 1));
  EXPECT_EQ(Bytewise(*other).read(opened.region()), pattern(5000, 1));
}

}  // namespace
}  // namespace waywiser
