// The two ends of a road between machines, as two processes that talk over the loopback device.
#include "waywiser/transport/ucx_staged/ucx_staged.hpp"

#include <gtest/gtest.h>

#include "tests/conformance/cases.hpp"
#include "tests/transport/two_processes.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/kernels/pattern.hpp"

namespace waywiser {
namespace {

constexpr Seconds staging_patience = 20;
constexpr Bytes most = 300001;

using Parameters = std::map<std::string, std::string>;

const std::vector<Parameters> shapes{{{"variant", "pageable"}},
                                     {{"variant", "whole"}},
                                     {{"variant", "pipelined"}, {"chunk", "4K"}, {"depth", "3"}},
                                     {{"variant", "pipelined"}, {"chunk", "64K"}, {"depth", "1"}}};

Path staged_path(Place mine, Place theirs, Parameters parameters) {
  parameters.insert({{"transports", "network-tcp"}, {"device", "lo"}});
  return {"ucx_staged", mine, seen_from_other(theirs), 2, parameters};
}

// One end, with memory to send from and to receive in.
struct End {
  End(const Path& path, PeerChannel& channel)
      : memory(platform->allocate(path.source, 16 * most, path.source.is_gpu() ? Allocation::gpu : Allocation::pinned)),
        stream(platform->open_stream(path.source)),
        transport(open_transport(path, {*platform, &channel})) {}
  Region part(Bytes slot, Bytes bytes) const { return memory.region().slice(slot * most + slot % 5, bytes); }
  void send(Bytes slot, Bytes bytes, std::uint64_t seed) {
    fill_pattern(*stream, part(slot, bytes), seed);
    transport->put(Region{nullptr, bytes, {}}, part(slot, bytes), *stream);
  }
  void expect(Bytes slot, Bytes bytes) { transport->accept(part(slot, bytes), *stream); }
  void finish() { transport->finish(*stream, Deadline::in(staging_patience)); }
  bool holds(Bytes slot, Bytes bytes, std::uint64_t seed) {
    return count_mismatches(*stream, part(slot, bytes), seed, Deadline::in(staging_patience)) == 0;
  }

  std::unique_ptr<Platform> platform = conformance::open_platform({"virtual_gpu", {}, 0});
  Memory memory;
  std::unique_ptr<Stream> stream;
  std::unique_ptr<Transport> transport;
};

// Both ends do this: every size there and back, then many messages at once.
bool all_arrives(End& end, std::uint64_t mine, std::uint64_t theirs) {
  bool good = true;
  for (const Bytes bytes : {Bytes{0}, Bytes{1}, Bytes{7}, Bytes{4095}, Bytes{4096}, Bytes{4097}, Bytes{65537}, most}) {
    fill_pattern(*end.stream, end.part(1, bytes + 8), 99);
    end.expect(1, bytes);
    end.send(0, bytes, mine + bytes);
    end.finish();
    good = good && end.holds(1, bytes, theirs + bytes);
  }
  const auto bytes_of = [](Bytes i) { return i % 3 == 2 ? most - i : 1 + i * 3001; };
  for (Bytes i = 0; i < 8; ++i) end.expect(8 + i, bytes_of(i));
  for (Bytes i = 0; i < 8; ++i) end.send(i, bytes_of(i), mine + i);
  end.finish();
  for (Bytes i = 0; i < 8; ++i) good = good && end.holds(8 + i, bytes_of(i), theirs + i);
  return good;
}

// UCX that one end has left instead of closing it cannot be forked: they close at the same time.
bool exchange(const Path& path, PeerChannel& channel, std::uint64_t mine, std::uint64_t theirs) {
  bool good = false;
  {
    End end(path, channel);
    good = all_arrives(end, mine, theirs);
    channel.exchange({}, Deadline::in(staging_patience));
  }
  channel.exchange({}, Deadline::in(staging_patience));
  return good;
}

class UcxStaged : public testing::TestWithParam<std::pair<Place, Place>> {};

TEST_P(UcxStaged, EverySizeAndManyAtOnceArriveInBothDirections) {
  const auto [here, there] = GetParam();
  const auto platform = conformance::open_platform({"virtual_gpu", {}, 0});
  if (const auto why = why_unavailable(staged_path(gpu(0), gpu(0), shapes.front()), {*platform})) GTEST_SKIP() << *why;
  for (const Parameters& shape : shapes) {
    ForkedPeer peer([&, there = there, here = here](PeerChannel& channel) {
      return exchange(staged_path(there, here, shape), channel, 1000, 2000);
    });
    const Path path = staged_path(here, there, shape);
    EXPECT_TRUE(exchange(path, peer.channel(), 2000, 1000)) << label(path);
    EXPECT_EQ(peer.wait(), 0) << label(path);
  }
}

INSTANTIATE_TEST_SUITE_P(Pairs, UcxStaged,
                         testing::Values(std::pair{gpu(0), gpu(1)}, std::pair{gpu(0), host(0)},
                                         std::pair{host(0), gpu(0)}));

TEST(UcxStagedAvailability, SaysWhyNot) {
  const auto platform = conformance::open_platform({"virtual_gpu", {}, 0});
  const TransportContext context{*platform};
  const auto why = [&](Place source, Place destination) {
    Path path = staged_path(source, gpu(0), shapes.front());
    path.destination = destination;
    return why_unavailable(path, context).value_or("");
  };
  EXPECT_NE(why(gpu(0), gpu(1)).find("two machines"), std::string::npos);
  EXPECT_NE(why(host(0), seen_from_other(host(0))).find("no GPU takes part"), std::string::npos);
  EXPECT_NE(why(gpu(7), seen_from_other(gpu(0))).find("no GPU 7"), std::string::npos);
  EXPECT_THROW(why_unavailable(staged_path(gpu(0), gpu(0), {{"variant", "wet"}}), context), Error);
}

TEST(UcxStagedAvailability, APeerThatEndsIsAnErrorAndNotAHang) {
  const auto platform = conformance::open_platform({"virtual_gpu", {}, 0});
  const Path path = staged_path(gpu(0), gpu(0), shapes[2]);
  if (const auto why = why_unavailable(path, {*platform})) GTEST_SKIP() << *why;
  ForkedPeer waiting([&](PeerChannel& channel) {
    End end(path, channel);
    end.expect(0, most);
    try {
      end.finish();
    } catch (const Error& problem) {
      return problem.kind() == ErrorKind::io || problem.kind() == ErrorKind::device;
    }
    return false;
  });
  {
    const End end(path, waiting.channel());
  }
  waiting.hang_up();
  EXPECT_EQ(waiting.wait(), 0);
}

}  // namespace
}  // namespace waywiser
