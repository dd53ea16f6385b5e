// Chunks of a message on their way through host memory, over a line that does what the test says.
#include "waywiser/transport/ucx_staged/staged_messages.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <type_traits>

#include "tests/conformance/cases.hpp"
#include "waywiser/comm/network/network_rails.hpp"
#include "waywiser/comm/rendezvous/chunked_message.hpp"
#include "waywiser/transport/ucx/ucx_connection.hpp"

namespace waywiser {
namespace {

// Measurements (UcxConnection) and groups (ChunkMessages) stage by the same class, and split a message over rails by
// the same.
static_assert(std::is_base_of_v<ChunkConnection, UcxConnection> && std::is_base_of_v<ChunkConnection, ChunkMessages>);
static_assert(std::is_same_v<decltype(NetworkRails::Request::parts), RailParts>);

constexpr Seconds most_wait = 20;

class MadeUpLine : public ChunkConnection {
 public:
  void send(ConstRegion chunk) override {
    began.push_back({const_cast<std::byte*>(chunk.data), chunk.bytes, chunk.place});
  }
  void receive(Region chunk) override { began.push_back(chunk); }
  std::uint64_t sent() override { return done; }
  std::uint64_t received() override { return done; }

  std::vector<Region> began;
  std::uint64_t done = 0;
};

struct Machine {
  std::unique_ptr<Platform> platform = conformance::open_platform({"virtual_gpu", {}, 0});
  std::unique_ptr<Stream> stream = platform->open_stream(gpu(0));
  HostPool pool{*platform};
  MadeUpLine line;
};

constexpr StagingShape two_of_4k{Allocation::pinned, 4096, 2};

TEST(StagedMessages, ARingSendsNoMoreChunksAtOnceThanItHasBuffers) {
  Machine machine;
  const Memory data = machine.platform->allocate(gpu(0), 5 * 4096 - 100, Allocation::gpu);
  StagingRing ring(machine.pool, gpu(0), two_of_4k);
  StagedSends sends(machine.line, two_of_4k, &ring);
  sends.add(data.region(), machine.stream.get());
  for (std::uint64_t gone = 0; gone < 5; ++gone) {
    sends.advance();
    machine.stream->synchronize(Deadline::in(most_wait));
    sends.advance();
    EXPECT_EQ(machine.line.began.size(), std::min<std::uint64_t>(5, gone + 2));
    EXPECT_FALSE(sends.done());
    ++machine.line.done;
    sends.advance();
    EXPECT_EQ(sends.chunks_done(), gone + 1);
  }
  EXPECT_TRUE(sends.done());
  EXPECT_EQ(machine.line.began.back().bytes, 4096u - 100);
  EXPECT_EQ(machine.line.began[0].data, machine.line.began[2].data);
  EXPECT_NE(machine.line.began[0].data, machine.line.began[1].data);
}

TEST(StagedMessages, WithoutARingAllChunksUpToALimitAreReceivedAtOnce) {
  Machine machine;
  const Memory data = machine.platform->allocate(host(0), 100 * 4096, Allocation::pageable);
  StagedReceives receives(machine.line, two_of_4k, nullptr);
  receives.add(data.region(), nullptr);
  receives.advance();
  EXPECT_EQ(machine.line.began.size(), 64u);
  machine.line.done = 64;
  receives.advance();
  receives.advance();
  EXPECT_EQ(machine.line.began.size(), 100u);
  EXPECT_EQ(machine.line.began.back().data, data.region().data + 99 * 4096);
  machine.line.done = 100;
  receives.advance();
  EXPECT_TRUE(receives.done());
}

// Whole messages, each larger than the last: the buffer grows, and the old one returns to the pool.
TEST(StagedMessages, ABufferThatIsTooSmallGivesWay) {
  Machine machine;
  std::set<std::byte*> buffers;
  for (int round = 0; round < 3; ++round) {
    StagingRing ring(machine.pool, gpu(0), {});
    for (const Bytes bytes : {Bytes{1} << 12, Bytes{1} << 14, Bytes{1} << 16})
      buffers.insert(ring.buffer(0, bytes).data);
  }
  EXPECT_EQ(buffers.size(), 3u);
}

}  // namespace
}  // namespace waywiser
