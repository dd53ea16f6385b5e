#include "waywiser/transport/courier/courier_pair.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tests/base/error_of.hpp"
#include "tests/transport/two_processes.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"
#include "waywiser/kernels/pattern.hpp"
#include "waywiser/transport/courier/courier.hpp"

namespace waywiser {
namespace {

const Path up{"courier", host(0), gpu(0), 2, {}};
const Path down{"courier", gpu(0), host(0), 2, {}};
constexpr Bytes capacity = 150000;

Deadline soon() { return Deadline::in(20); }

std::unique_ptr<Platform> platform_with_one_gpu() {
  VirtualMachine machine;
  machine.gpus = 1;
  return open_virtual_platform(machine);
}

CourierOptions of_shape(CourierShape shape) {
  CourierOptions options;
  options.virtual_shape = shape;
  return options;
}

// The end without a GPU, as another process has it.
struct Near {
  explicit Near(PeerChannel& channel) : transport(open_courier(up, {*platform, &channel})) {}
  Region region(Bytes bytes) const { return memory.region().slice(0, bytes); }

  std::unique_ptr<Platform> platform = open_host_platform();
  std::unique_ptr<Stream> stream = platform->open_stream(host(0));
  Memory memory = platform->allocate(host(0), capacity, Allocation::pageable);
  std::unique_ptr<Transport> transport;
};

struct Far {
  explicit Far(PeerChannel& channel, const CourierOptions& options = {})
      : transport(open_courier(down, {*platform, &channel}, options)) {}
  Region region(Bytes bytes) const { return memory.region().slice(0, bytes); }

  std::unique_ptr<Platform> platform = platform_with_one_gpu();
  std::unique_ptr<Stream> stream = platform->open_stream(host(0));
  std::unique_ptr<Stream> gpu_stream = platform->open_stream(gpu(0));
  Memory memory = platform->allocate(gpu(0), capacity, Allocation::gpu);
  std::unique_ptr<Transport> transport;
};

class CourierPair : public testing::TestWithParam<CourierShape> {};

// Every size comes back as it went, several messages at once.
TEST_P(CourierPair, EchoesAnySize) {
  const std::vector<Bytes> sizes{1, 8, 13, 360, 364, 1000, 1024, 4096, 4608, 5000, 70000, capacity};
  ForkedPeer peer([&](PeerChannel& channel) {
    Near near(channel);
    const Memory back = near.platform->allocate(host(0), capacity, Allocation::pageable);
    bool good = true;
    for (const Bytes bytes : sizes) {
      fill_pattern(*near.stream, near.region(bytes), bytes);
      near.transport->accept(back.region().slice(0, bytes), *near.stream);
      near.transport->put({nullptr, bytes, gpu(0)}, near.region(bytes), *near.stream);
      near.transport->put({nullptr, 0, gpu(0)}, near.region(0), *near.stream);
      near.transport->finish(*near.stream, soon());
      good = good && count_mismatches(*near.stream, back.region().slice(0, bytes), bytes, soon()) == 0;
    }
    return good;
  });
  Far far(peer.channel(), of_shape(GetParam()));
  for (const Bytes bytes : sizes) {
    far.transport->accept(far.region(bytes), *far.stream);
    far.transport->accept(far.region(0), *far.stream);
    far.transport->finish(*far.stream, soon());
    EXPECT_EQ(count_mismatches(*far.gpu_stream, far.region(bytes), bytes, soon()), 0u) << bytes;
    far.transport->put({nullptr, bytes, host(0)}, far.region(bytes), *far.stream);
    far.transport->finish(*far.stream, soon());
    far.transport->rest();
  }
  EXPECT_EQ(peer.wait(), 0);
}

INSTANTIATE_TEST_SUITE_P(Shapes, CourierPair, testing::Values(CourierShape{1, 1}, CourierShape{2, 2}),
                         [](const auto& test) { return "lanes" + std::to_string(test.param.lanes); });

TEST(CourierPairSignal, ArrivesAfterThePutsAtEitherEnd) {
  ForkedPeer peer([](PeerChannel& channel) {
    Near near(channel);
    near.transport->signal({nullptr, 8, gpu(0)}, 77, *near.stream);
    near.transport->accept(near.region(8), *near.stream);
    near.transport->finish(*near.stream, soon());
    return *reinterpret_cast<const std::uint64_t*>(near.memory.region().data) == 0x1122334455667788;
  });
  Far far(peer.channel());
  far.transport->accept(far.region(8), *far.stream);
  far.gpu_stream->wait_value(far.region(8), 77);
  far.transport->finish(*far.stream, soon());
  far.gpu_stream->synchronize(soon());
  far.transport->signal({nullptr, 8, host(0)}, 0x1122334455667788, *far.stream);
  far.transport->finish(*far.stream, soon());
  EXPECT_EQ(peer.wait(), 0);
}

TEST(CourierPairErrors, ADeadPeerIsNamed) {
  ForkedPeer peer([](PeerChannel& channel) {
    const Near near(channel);
    return true;
  });
  Far far(peer.channel());
  EXPECT_EQ(peer.wait(), 0);
  far.transport->accept(far.region(8), *far.stream);
  const std::string text = error_of([&] { far.transport->finish(*far.stream, soon()); });
  EXPECT_EQ(text, "courier, gpu0>>host0: the peer process ended");
}

TEST(CourierPairErrors, APeerThatDoesNotAnswerIsATimeout) {
  ForkedPeer peer([](PeerChannel& channel) {
    const Near near(channel);
    channel.receive(soon());
    return true;
  });
  Far far(peer.channel());
  far.transport->put({nullptr, 8, host(0)}, far.region(8), *far.stream);
  const std::string text = error_of([&] { far.transport->finish(*far.stream, Deadline::in(0.05)); });
  EXPECT_EQ(text, "courier, gpu0>>host0: the peer process does not answer");
  peer.channel().send(true, soon());
  EXPECT_EQ(peer.wait(), 0);
}

TEST(CourierPairErrors, OtherSizesThanAcceptedAreRefused) {
  ForkedPeer peer([](PeerChannel& channel) {
    Near near(channel);
    const std::string down_text = error_of([&] {
      near.transport->accept(near.region(16), *near.stream);
      near.transport->finish(*near.stream, soon());
    });
    const std::string up_text = error_of([&] {
      Near again(channel);
      again.transport->put({nullptr, 8, gpu(0)}, again.region(8), *again.stream);
      again.transport->finish(*again.stream, soon());
    });
    channel.send({down_text, up_text}, soon());
    return true;
  });
  {
    Far far(peer.channel());
    far.transport->put({nullptr, 12, host(0)}, far.region(12), *far.stream);
  }
  Far far(peer.channel());
  far.transport->accept(far.region(9), *far.stream);
  const Json texts = peer.channel().receive(soon()).first;
  EXPECT_EQ(texts[0], "courier, host0>>gpu0: accepted 16 bytes, but 12 were put");
  EXPECT_EQ(texts[1], "courier, host0>>gpu0: accepted 9 bytes, but 8 were put");
  EXPECT_EQ(peer.wait(), 0);
}

TEST(CourierPairErrors, NeedsAPeer) {
  const auto platform = platform_with_one_gpu();
  EXPECT_NE(error_of([&] { open_courier(up, {*platform}); }).find("needs a peer process"), std::string::npos);
}

}  // namespace
}  // namespace waywiser
