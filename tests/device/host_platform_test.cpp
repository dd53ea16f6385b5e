#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "waywiser/base/error.hpp"
#include "waywiser/device/host_stream.hpp"
#include "waywiser/device/numa.hpp"
#include "waywiser/device/platform.hpp"

namespace waywiser {
namespace {

ErrorKind kind_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.kind();
  }
  ADD_FAILURE() << "no error";
  return ErrorKind::interrupted;
}

TEST(HostPlatform, EachKindOfMemoryCanBeWrittenAndIsPageAligned) {
  const auto platform = open_host_platform();
  for (const Allocation kind : {Allocation::pageable, Allocation::pinned, Allocation::shared}) {
    const Memory memory = platform->allocate(host(numa_nodes().front()), 5000, kind);
    EXPECT_EQ(memory.region().bytes, 5000u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.region().data) % page_size(), 0u);
    std::memset(memory.region().data, 7, 5000);
    EXPECT_EQ(memory.allocation(), kind);
  }
}

TEST(HostPlatform, WhatItCannotAllocateHasAReason) {
  const auto platform = open_host_platform();
  EXPECT_TRUE(platform->why_not_allocatable(gpu(0), Allocation::gpu));
  EXPECT_TRUE(platform->why_not_allocatable(host(0), Allocation::gpu));
  EXPECT_TRUE(platform->why_not_allocatable(host(4000), Allocation::pageable));
  EXPECT_EQ(kind_of([&] { platform->allocate(host(4000), 8, Allocation::pageable); }), ErrorKind::unavailable);
  EXPECT_EQ(kind_of([&] { platform->allocate(host(0), Bytes{1} << 60, Allocation::pageable); }), ErrorKind::device);
}

TEST(HostPlatform, SharedMemoryOutlivesItsOwner) {
  const auto platform = open_host_platform();
  Memory owner = platform->allocate(host(0), 100, Allocation::shared);
  owner.region().data[99] = std::byte{42};
  const MemoryHandle handle = platform->export_memory(owner);
  const Memory opened = platform->open_memory(handle);
  owner = Memory();
  EXPECT_EQ(opened.region().data[99], std::byte{42});
  EXPECT_EQ(opened.region().bytes, 100u);
}

TEST(HostPlatform, BadHandlesAreRefused) {
  const auto platform = open_host_platform();
  const Memory memory = platform->allocate(host(0), 100, Allocation::shared);
  MemoryHandle too_long = platform->export_memory(memory);
  too_long.bytes = 1 << 20;
  EXPECT_EQ(kind_of([&] { platform->open_memory(too_long); }), ErrorKind::device);
  MemoryHandle closed = platform->export_memory(memory);
  closed.descriptor = Descriptor();
  EXPECT_EQ(kind_of([&] { platform->open_memory(closed); }), ErrorKind::device);
  MemoryHandle shrinkable = platform->export_memory(memory);
  shrinkable.descriptor = Descriptor(memfd_create("test", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(shrinkable.descriptor.number(), 4096), 0);
  EXPECT_EQ(kind_of([&] { platform->open_memory(shrinkable); }), ErrorKind::device);
  const Memory pageable = platform->allocate(host(0), 100, Allocation::pageable);
  EXPECT_EQ(kind_of([&] { platform->export_memory(pageable); }), ErrorKind::unavailable);
}

TEST(HostStream, CopiesAtOnceAndKeepsOrder) {
  HostStream stream(host(0));
  std::byte from[16], to[16]{};
  std::memset(from, 3, sizeof from);
  stream.copy({to, 16, host(0)}, {from, 16, host(0)});
  EXPECT_EQ(std::memcmp(from, to, 16), 0);
  EXPECT_TRUE(stream.done());
  bool called = false;
  stream.call([&] { called = true; });
  EXPECT_TRUE(called);
}

TEST(HostStream, RefusesGpuMemoryKernelsAndBadFlags) {
  HostStream stream(host(0));
  alignas(8) std::byte bytes[32]{};
  EXPECT_EQ(kind_of([&] { stream.copy({bytes, 8, gpu(0)}, {bytes + 8, 8, host(0)}); }), ErrorKind::device);
  EXPECT_EQ(kind_of([&] { stream.copy({bytes, 8, host(0)}, {bytes + 4, 8, host(0)}); }), ErrorKind::invalid_input);
  EXPECT_EQ(kind_of([&] { stream.launch({}); }), ErrorKind::unavailable);
  EXPECT_EQ(kind_of([&] { stream.write_value({bytes + 1, 8, host(0)}, 1); }), ErrorKind::invalid_input);
  EXPECT_EQ(kind_of([&] { stream.write_value({bytes, 4, host(0)}, 1); }), ErrorKind::invalid_input);
}

TEST(HostStream, AFlagPassesDataBetweenThreads) {
  alignas(8) std::byte flag[8]{};
  int data = 0;
  std::jthread writer([&] {
    data = 42;
    HostStream(host(0)).write_value({flag, 8, host(0)}, 5);
  });
  HostStream(host(0)).wait_value({flag, 8, host(0)}, 5);
  EXPECT_EQ(data, 42);
}

TEST(HostStream, AFlagThatNeverComesEndsInATimeout) {
  alignas(8) std::byte flag[8]{};
  HostStream stream(host(0), 0.001);
  EXPECT_EQ(kind_of([&] { stream.wait_value({flag, 8, host(0)}, 1); }), ErrorKind::timeout);
}

TEST(HostStream, EventsTakeTheTime) {
  const auto platform = open_host_platform();
  const auto stream = platform->open_stream(host(0));
  const auto first = platform->create_event(host(0));
  const auto second = platform->create_event(host(0));
  stream->record(*first);
  stream->record(*second);
  EXPECT_TRUE(second->done());
  EXPECT_GE(second->since(*first), 0);
}

TEST(Numa, AtLeastOneNodeWithMemory) {
  ASSERT_FALSE(numa_nodes().empty());
  EXPECT_GT(free_memory_of_node(numa_nodes().front()), 0u);
  EXPECT_EQ(nearest_numa_node("no such device"), numa_nodes().front());
}

}  // namespace
}  // namespace waywiser
