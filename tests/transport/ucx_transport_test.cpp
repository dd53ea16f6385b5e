#include <gtest/gtest.h>
#include <signal.h>

#include "tests/transport/sanitized.hpp"
#include "tests/transport/two_processes.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/kernels/pattern.hpp"
#include "waywiser/transport/transport.hpp"
#include "waywiser/transport/ucx/ucx_library.hpp"
#include "waywiser/transport/ucx/ucx_selection.hpp"
#include "waywiser/transport/ucx/ucx_worker.hpp"

namespace waywiser {
namespace {

constexpr Seconds ucx_patience = 20;

Path ucx_path(const std::string& transports) { return {"ucx", host(0), host(0), 2, {{"transports", transports}}}; }

// One side of a pair of processes, with a buffer.
struct Side {
  Side(const std::string& transports, PeerChannel& channel, Bytes bytes, Seconds wait = ucx_patience)
      : memory(platform->allocate(host(0), std::max<Bytes>(bytes, 1), Allocation::pageable)),
        stream(platform->open_stream(host(0))),
        transport(open_transport(ucx_path(transports), {*platform, &channel, wait})) {}
  Region part(Bytes offset, Bytes bytes) const { return memory.region().slice(offset, bytes); }
  void finish() { transport->finish(*stream, Deadline::in(ucx_patience)); }

  std::unique_ptr<Platform> platform = open_host_platform();
  Memory memory;
  std::unique_ptr<Stream> stream;
  std::unique_ptr<Transport> transport;
};

const std::vector<Bytes> sizes = {0, 1, 7, 8, 92, 93, 4095, 4096, 4097, 8249, 65537, 262144, 1000003, (4u << 20) + 1};

bool intact(Side& side, Bytes offset, Bytes bytes, std::uint64_t seed) {
  return count_mismatches(*side.stream, side.part(offset, bytes), seed, Deadline::in(ucx_patience)) == 0;
}

class UcxTransport : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!cma_runs && std::string(GetParam()) == "cma") GTEST_SKIP() << "AddressSanitizer";
    const auto platform = open_host_platform();
    if (const auto why = why_unavailable(ucx_path(GetParam()), {*platform})) GTEST_SKIP() << *why;
  }
};

TEST_P(UcxTransport, EverySizeArrivesInBothDirections) {
  const std::string transports = GetParam();
  const auto exchange = [&](PeerChannel& channel, std::uint64_t mine, std::uint64_t theirs) {
    Side side(transports, channel, 2 * sizes.back() + 2);
    bool good = true;
    for (const Bytes bytes : sizes) {
      const Region source = side.part(0, bytes), landing = side.part(sizes.back() + bytes % 3, bytes);
      fill_pattern(*side.stream, source, mine + bytes);
      fill_pattern(*side.stream, landing, 99);
      side.transport->accept(landing, *side.stream);
      side.transport->put(Region{nullptr, bytes, host(0)}, source, *side.stream);
      side.finish();
      good = good && intact(side, sizes.back() + bytes % 3, bytes, theirs + bytes);
    }
    channel.exchange({}, Deadline::in(ucx_patience));
    return good;
  };
  ForkedPeer peer([&](PeerChannel& channel) { return exchange(channel, 1000, 2000); });
  EXPECT_TRUE(exchange(peer.channel(), 2000, 1000));
  EXPECT_EQ(peer.wait(), 0);
}

TEST_P(UcxTransport, ManyInFlightArriveInOrder) {
  const std::string transports = GetParam();
  constexpr Bytes count = 96, largest = 300000;
  const auto bytes_of = [](Bytes i) { return i % 5 == 4 ? largest - i : 1 + i * 37; };
  ForkedPeer peer([&](PeerChannel& channel) {
    Side side(transports, channel, count * largest);
    for (Bytes i = 0; i < count; ++i) side.transport->accept(side.part(i * largest, bytes_of(i)), *side.stream);
    side.transport->accept(side.part(count * largest - 8, 8), *side.stream);
    side.finish();
    bool good = true;
    for (Bytes i = 0; i < count; ++i) good = good && intact(side, i * largest, bytes_of(i), i);
    std::uint64_t flag = 0;
    std::memcpy(&flag, side.part(count * largest - 8, 8).data, 8);
    channel.exchange({}, Deadline::in(ucx_patience));
    return good && flag == 4711;
  });
  Side side(transports, peer.channel(), count * largest);
  for (Bytes i = 0; i < count; ++i) {
    fill_pattern(*side.stream, side.part(i * largest, bytes_of(i)), i);
    side.transport->put(Region{nullptr, bytes_of(i), host(0)}, side.part(i * largest, bytes_of(i)), *side.stream);
  }
  side.transport->signal(Region{nullptr, 8, host(0)}, 4711, *side.stream);
  side.finish();
  peer.channel().exchange({}, Deadline::in(ucx_patience));
  EXPECT_EQ(peer.wait(), 0);
}

// The peer moves nothing meanwhile.
TEST_P(UcxTransport, AMessageThatIsNotTakenEndsThePatienceOfItsSignal) {
  const std::string transports = GetParam();
  ForkedPeer peer([&](PeerChannel& channel) {
    const Side side(transports, channel, 0);
    channel.exchange({}, Deadline::in(2 * ucx_patience));
    return true;
  });
  constexpr Bytes bytes = 64 << 20;
  Side side(transports, peer.channel(), bytes, 0.05);
  side.transport->put(Region{nullptr, bytes, host(0)}, side.part(0, bytes), *side.stream);
  try {
    side.transport->signal(Region{nullptr, 8, host(0)}, 4711, *side.stream);
    ADD_FAILURE() << "the signal came";
  } catch (const Error& problem) {
    EXPECT_EQ(problem.kind(), ErrorKind::timeout) << problem.what();
  }
  peer.channel().exchange({}, Deadline::in(ucx_patience));
  EXPECT_EQ(peer.wait(), 0);
}

TEST_P(UcxTransport, AcceptOfAnotherSizeIsAnError) {
  const std::string transports = GetParam();
  for (const auto& [put, accepted] : {std::pair<Bytes, Bytes>{8, 9}, {100, 99}, {500000, 400000}}) {
    ForkedPeer peer([&, accepted = accepted](PeerChannel& channel) {
      Side side(transports, channel, 1 << 20);
      bool refused = false;
      try {
        side.transport->accept(side.part(0, accepted), *side.stream);
        side.finish();
      } catch (const Error& problem) {
        refused = problem.kind() == ErrorKind::corrupt || problem.kind() == ErrorKind::device;
      }
      channel.exchange({}, Deadline::in(ucx_patience));
      return refused;
    });
    Side side(transports, peer.channel(), 1 << 20);
    side.transport->put(Region{nullptr, put, host(0)}, side.part(0, put), *side.stream);
    while (side.transport != nullptr) {
      try {
        side.transport->finish(*side.stream, Deadline::in(0));
        break;
      } catch (const Error&) {
        break;
      }
    }
    peer.channel().send({}, Deadline::in(ucx_patience));
    // The receiver of a long message needs the sender's progress to notice.
    while (!peer.channel().peer_ended()) {
      try {
        side.transport->finish(*side.stream, Deadline::in(0.001));
      } catch (const Error&) {
      }
    }
    EXPECT_EQ(peer.wait(), 0) << put;
  }
}

TEST_P(UcxTransport, KilledPeerIsAnErrorAndNotAHang) {
  const std::string transports = GetParam();
  ForkedPeer peer([&](PeerChannel& channel) {
    Side side(transports, channel, 8);
    channel.receive(Deadline::in(ucx_patience));
    return false;
  });
  {
    Side side(transports, peer.channel(), 64 << 20);
    side.transport->put(Region{nullptr, 64 << 20, host(0)}, side.part(0, 64 << 20), *side.stream);
    side.transport->accept(side.part(0, 8), *side.stream);
    ASSERT_EQ(::kill(peer.process(), SIGKILL), 0);
    try {
      side.finish();
      ADD_FAILURE() << "finished without a peer";
    } catch (const Error& problem) {
      EXPECT_TRUE(problem.kind() == ErrorKind::io || problem.kind() == ErrorKind::device) << problem.what();
      EXPECT_NE(std::string(problem.what()).find("host0>>host0"), std::string::npos) << problem.what();
    }
  }
  EXPECT_TRUE(WIFSIGNALED(peer.wait()));
}

TEST_P(UcxTransport, StoppedPeerIsATimeout) {
  const std::string transports = GetParam();
  ForkedPeer peer([&](PeerChannel& channel) {
    Side side(transports, channel, 8);
    ::raise(SIGSTOP);
    return false;
  });
  {
    Side side(transports, peer.channel(), 8);
    side.transport->accept(side.part(0, 8), *side.stream);
    try {
      side.transport->finish(*side.stream, Deadline::in(0.05));
      ADD_FAILURE() << "finished without a peer";
    } catch (const Error& problem) {
      EXPECT_EQ(problem.kind(), ErrorKind::timeout) << problem.what();
    }
  }
  ::kill(peer.process(), SIGKILL);
}

INSTANTIATE_TEST_SUITE_P(Host, UcxTransport, testing::Values("posix", "sysv", "cma", "tcp"),
                         [](const auto& row) { return std::string(row.param); });

std::string reason(const Path& path) {
  const auto platform = open_host_platform();
  return why_unavailable(path, {*platform}).value_or("");
}

TEST(UcxReasons, SayWhyNot) {
  EXPECT_EQ(reason(ucx_path("pigeon")), "transports=pigeon is not known here");
  Path one = ucx_path("posix");
  one.processes = 1;
  EXPECT_EQ(reason(one), "UCX is used between two processes only");
  EXPECT_EQ(reason(ucx_path("cuda_ipc")), "UCX transport cuda_ipc is for GPU memory");
  EXPECT_THROW(reason({"ucx", host(0), host(0), 2, {}}), Error);
}

TEST(UcxReasons, NamesTheLibraryAndTheMissingTransport) {
  if (!ucx_library().usable()) GTEST_SKIP() << ucx_library().why_not();
  const UcxContext::Trial posix = UcxContext::try_selection({"posix", "posix,rc", ""});
  EXPECT_TRUE(posix.status.good());
  EXPECT_TRUE(posix.has("posix"));
  EXPECT_FALSE(posix.has("rc"));
  EXPECT_FALSE(UcxContext::try_selection({"rc", "rc", ""}).status.good());
  EXPECT_TRUE(ucx_library().text().starts_with("UCX 1.")) << ucx_library().text();
}

}  // namespace
}  // namespace waywiser
