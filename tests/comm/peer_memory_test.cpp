#include "waywiser/comm/peer_memory/peer_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "waywiser/base/error.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"

namespace waywiser {
namespace {

constexpr Bytes mebi = Bytes{1} << 20;

// Two GPUs: the owner's and the one that opens its memory.
struct OwnerAndUser {
  OwnerAndUser() {
    VirtualMachine machine;
    machine.gpus = 2;
    machine.memory = Bytes{16} << 30;
    platform = open_virtual_platform(machine);
    pinned = platform->allocate(host(0), 4096, Allocation::pinned);
    stream = platform->open_stream(gpu(1));
    peers.emplace(*platform, timeout);
  }

  Memory memory_with(int value) {
    Memory memory = platform->allocate(gpu(0), 4096, Allocation::gpu);
    std::memset(pinned.region().data, value, 4096);
    stream->copy(memory.region().slice(0, 4096), pinned.region().slice(0, 4096));
    stream->synchronize(Deadline::in(20));
    return memory;
  }
  int value_in(Region region) {
    stream->copy(pinned.region().slice(0, region.bytes), region);
    stream->synchronize(Deadline::in(20));
    return static_cast<int>(pinned.region().data[region.bytes - 1]);
  }

  std::unique_ptr<Platform> platform;
  Memory pinned;
  std::unique_ptr<Stream> stream;
  Seconds timeout = 20;
  std::optional<PeerMemory> peers;
};

TEST(PeerMemory, IsOpenedOnceForAllWhoHoldIt) {
  OwnerAndUser both;
  const Memory memory = both.memory_with(5);
  const SharedRegion shared = both.peers->share(memory.region());
  auto first = both.peers->open(shared, gpu(1));
  const std::byte* const address = first->region().data;
  EXPECT_EQ(both.value_in(first->region()), 5);
  EXPECT_EQ(both.peers->open(shared, gpu(1)), first);
  EXPECT_EQ(both.peers->open_and_keep(shared, gpu(1)).region.data, address);
  EXPECT_NE(both.peers->open(shared, gpu(0)), first);
  first.reset();
  EXPECT_TRUE(both.platform->gpu_of(address)) << "it is kept";
  both.peers->forget();
  EXPECT_FALSE(both.platform->gpu_of(address)) << "nobody holds it";
}

TEST(PeerMemory, OtherMemoryAtTheSameAddressIsOpenedAnew) {
  OwnerAndUser both;
  std::optional<Memory> freed(both.memory_with(5));
  const SharedRegion before = both.peers->share(freed->region());
  EXPECT_EQ(both.value_in(both.peers->open_and_keep(before, gpu(1)).region), 5);
  freed.reset();
  const Memory memory = both.memory_with(6);
  SharedRegion after = both.peers->share(memory.region());
  after.address = before.address;
  EXPECT_EQ(both.value_in(both.peers->open_and_keep(after, gpu(1)).region), 6);
  EXPECT_EQ(both.value_in(both.peers->open(after, gpu(1))->region()), 6);
}

TEST(PeerMemory, LargerMemoryAtTheSameAddressIsOpenedAnew) {
  OwnerAndUser both;
  const Memory memory = both.memory_with(7);
  SharedRegion part = both.peers->share(memory.region());
  part.allocation_bytes = part.bytes =
      100;  // some platforms know no more of an allocation than the part up to a share's end
  EXPECT_EQ(both.value_in(both.peers->open_and_keep(part, gpu(1)).region), 7);
  EXPECT_EQ(both.peers->open_and_keep(both.peers->share(memory.region()), gpu(1)).region.bytes, 4096u);
}

// Opens so many allocations of a size, one after another. Their addresses at the user. The owner frees them at the end,
// since new memory at the address of another would replace it.
std::vector<const std::byte*> open_one_after_another(OwnerAndUser& both, int count, Bytes bytes) {
  std::vector<Memory> memory;
  std::vector<const std::byte*> addresses;
  for (int i = 0; i < count; ++i) {
    memory.push_back(both.platform->allocate(gpu(0), bytes, Allocation::gpu));
    addresses.push_back(both.peers->open_and_keep(both.peers->share(memory.back().region()), gpu(1)).region.data);
  }
  return addresses;
}

TEST(PeerMemory, StaysOpenWhileItIsHeldWhateverElseIsOpened) {
  OwnerAndUser both;
  const Memory memory = both.memory_with(9);
  PeerMemory::Part held = both.peers->open_and_keep(both.peers->share(memory.region()), gpu(1));
  open_one_after_another(both, 300, 4096);
  ASSERT_TRUE(both.platform->gpu_of(held.region.data));
  EXPECT_EQ(both.value_in(held.region), 9);
  const std::byte* const address = held.region.data;
  held = {};
  EXPECT_FALSE(both.platform->gpu_of(address)) << "it is no longer among the last ones";
}

TEST(PeerMemory, FreedMemoryIsNotKeptForLong) {
  OwnerAndUser both;
  const auto kept_of = [&](int count, Bytes bytes) {
    const std::vector<const std::byte*> addresses = open_one_after_another(both, count, bytes);
    const auto kept =
        std::ranges::count_if(addresses, [&](auto each) { return both.platform->gpu_of(each).has_value(); });
    both.peers->forget();
    return kept;
  };
  EXPECT_EQ(kept_of(40, 4096), 40);
  both.peers.emplace(*both.platform, both.timeout);
  EXPECT_EQ(kept_of(20, 256 * mebi), 16);
  both.peers.emplace(*both.platform, both.timeout);
  EXPECT_LE(kept_of(40, 32 * mebi), 32);
}

TEST(PeerMemory, WhatItsOwnerHasFreedCannotBeOpened) {
  OwnerAndUser both;
  std::optional<Memory> freed(both.memory_with(5));
  const SharedRegion shared = both.peers->share(freed->region());
  freed.reset();
  try {
    static_cast<void>(both.peers->open(shared, gpu(1)));
    FAIL() << "it is gone";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device);
    EXPECT_EQ(std::string(error.what()).find("the memory of another rank on GPU " + both.platform->identity(0) + ": "),
              0u)
        << error.what();
  }
}

class ReceiveArenaTest : public testing::Test {
 protected:
  ReceiveArena& arena() { return both_.peers->arena(gpu(0)); }
  Bytes allocated() const { return both_.platform->allocated_memory(0); }
  void say_that_one_has_left(Region slice, int rank) {
    both_.platform->set_peer_access(1, 0, true);
    both_.stream->write_value(slice.slice(8 * static_cast<Bytes>(rank), 8), 1);
    both_.stream->synchronize(Deadline::in(20));
  }

  OwnerAndUser both_;
};

TEST_F(ReceiveArenaTest, GivesSlicesThatDoNotOverlapUpToItsLimit) {
  std::vector<Region> slices;
  while (arena().most() >= 5 * mebi) slices.push_back(*arena().take(5 * mebi));
  EXPECT_EQ(slices.size(), 12u);
  EXPECT_FALSE(arena().take(5 * mebi));
  EXPECT_LE(allocated(), ReceiveArena::limit);
  for (std::size_t a = 0; a < slices.size(); ++a)
    for (std::size_t b = 0; b < a; ++b) EXPECT_FALSE(overlap(slices[a], slices[b]));
  for (const Region& slice : slices) arena().give_back(slice);
  EXPECT_TRUE(arena().take(5 * mebi));
}

TEST_F(ReceiveArenaTest, HolesOfABlockGrowTogether) {
  const Region all = *arena().take(8 * mebi);
  arena().give_back(all);
  const Region a = *arena().take(3 * mebi), b = *arena().take(2 * mebi), c = *arena().take(3 * mebi);
  for (const Region& slice : {a, c, b}) arena().give_back(slice);
  EXPECT_EQ(arena().take(8 * mebi)->data, all.data);
  EXPECT_EQ(allocated(), 8 * mebi);
}

TEST_F(ReceiveArenaTest, ASliceIsUsedAgainOnceAllOthersHaveLeft) {
  const Region slice = *arena().take(40 * mebi), apart = arena().take_apart(mebi);
  arena().leave(slice, 2, {apart});
  EXPECT_FALSE(arena().take(40 * mebi));
  say_that_one_has_left(slice, 0);
  EXPECT_FALSE(arena().take(40 * mebi));
  EXPECT_EQ(allocated(), 41 * mebi);
  say_that_one_has_left(slice, 2);
  EXPECT_EQ(arena().take(40 * mebi)->data, slice.data);
  EXPECT_EQ(allocated(), 40 * mebi);
}

TEST_F(ReceiveArenaTest, MemoryOfOneOperationIsOfTheLimitAndGoesWithItsGroup) {
  const Region slice = *arena().take(40 * mebi), operation = *arena().take_plain(20 * mebi);
  EXPECT_FALSE(arena().take_plain(5 * mebi));
  EXPECT_LE(allocated(), ReceiveArena::limit);
  arena().give_back(operation);
  const Region again = *arena().take_plain(20 * mebi);
  EXPECT_EQ(again.data, operation.data);
  arena().leave(slice, 1, {again});
  EXPECT_FALSE(arena().take_plain(20 * mebi));
  say_that_one_has_left(slice, 0);
  EXPECT_TRUE(arena().take_plain(40 * mebi) && arena().take_plain(20 * mebi));
}

TEST_F(ReceiveArenaTest, GivesAllBackWhenItIsClosed) {
  static_cast<void>(arena().take(mebi));
  static_cast<void>(arena().take_apart(mebi));
  EXPECT_GT(allocated(), 0u);
  both_.peers->close();
  EXPECT_EQ(allocated(), 0u);
}

}  // namespace
}  // namespace waywiser
