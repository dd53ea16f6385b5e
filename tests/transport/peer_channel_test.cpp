#include "waywiser/transport/peer_channel.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <random>
#include <thread>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr Seconds channel_patience = 5;

struct Ends {
  Ends() {
    auto [first, second] = PeerChannel::socket_pair();
    raw = first.duplicate();
    a.emplace(std::move(first));
    b.emplace(std::move(second));
  }
  void close_both_writers() {
    a.reset();
    raw = {};
  }
  void write(const void* data, std::size_t size) const {
    ASSERT_EQ(::send(raw.number(), data, size, MSG_NOSIGNAL), static_cast<ssize_t>(size));
  }
  std::optional<PeerChannel> a, b;
  Descriptor raw;  // writes bytes past the channel's checks
};

struct RawHeader {
  std::uint32_t magic = 0x43505757, length = 0, descriptors = 0;
};

ErrorKind kind_of_receive(PeerChannel& channel, Seconds seconds = channel_patience) {
  try {
    channel.receive(Deadline::in(seconds));
  } catch (const Error& problem) {
    return problem.kind();
  }
  ADD_FAILURE() << "received a message";
  return ErrorKind::interrupted;
}

TEST(PeerChannel, CarriesMessagesBothWays) {
  Ends ends;
  const Json large{{"text", std::string(1000000, 'x')}};
  std::jthread sender([&] { ends.a->send(large, Deadline::in(channel_patience)); });
  EXPECT_EQ(ends.b->receive(Deadline::in(channel_patience)).first, large);
  sender.join();
  std::jthread other(
      [&] { EXPECT_EQ(ends.b->exchange({{"b", 2}}, Deadline::in(channel_patience)), (Json{{"a", 1}})); });
  EXPECT_EQ(ends.a->exchange({{"a", 1}}, Deadline::in(channel_patience)), (Json{{"b", 2}}));
}

TEST(PeerChannel, SealedItTakesOnlyWhatTheOtherOneHasSaidNext) {
  const Seal::Key one{std::byte{1}}, other{std::byte{2}};
  auto [here, there] = PeerChannel::socket_pair();
  const Descriptor wire(::dup(there.number()));
  PeerChannel mine({std::move(here), Seal(one, other)}), theirs({std::move(there), Seal(other, one)});
  for (int i = 0; i < 3; ++i) {
    theirs.send({{"number", i}}, Deadline::in(channel_patience));
    EXPECT_EQ(mine.exchange({{"answer", i}}, Deadline::in(channel_patience))["number"], i);
    EXPECT_EQ(theirs.receive(Deadline::in(channel_patience)).first["answer"], i);
  }
  PeerChannel stranger(Descriptor(::dup(wire.number())));
  stranger.send({{"number", 3}}, Deadline::in(channel_patience));
  std::array<char, Seal::mark_bytes> mark{};
  ASSERT_EQ(::write(wire.number(), mark.data(), mark.size()), static_cast<ssize_t>(mark.size()));
  EXPECT_EQ(kind_of_receive(mine), ErrorKind::invalid_input);
}

TEST(PeerChannel, CarriesDescriptors) {
  Ends ends;
  const Descriptor memory(::memfd_create("test", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(memory.number(), 4096), 0);
  ends.a->send({{"n", 8}}, Deadline::in(channel_patience), std::vector<int>(8, memory.number()));
  ends.a->send({{"n", 0}}, Deadline::in(channel_patience));
  const auto [message, descriptors] = ends.b->receive(Deadline::in(channel_patience));
  ASSERT_EQ(descriptors.size(), 8u);
  EXPECT_EQ(::lseek(descriptors[7].number(), 0, SEEK_END), 4096);
  EXPECT_EQ(::fcntl(descriptors[0].number(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  EXPECT_TRUE(ends.b->receive(Deadline::in(channel_patience)).second.empty());
}

TEST(PeerChannel, RefusesTooMuch) {
  Ends ends;
  EXPECT_THROW(ends.a->send(std::string(1 << 20, 'x'), Deadline::in(channel_patience)), Error);
  EXPECT_THROW(ends.a->send({}, Deadline::in(channel_patience), std::vector<int>(9, ends.raw.number())), Error);
}

TEST(PeerChannel, WaitsUntilTheDeadlineOnly) {
  Ends ends;
  EXPECT_EQ(kind_of_receive(*ends.b, 0.01), ErrorKind::timeout);
  const Json large(std::string(900000, 'x'));
  const auto fill = [&] {
    for (;;) ends.a->send(large, Deadline::in(0.01));
  };
  EXPECT_THROW(fill(), Error);
}

TEST(PeerChannel, NoticesThatThePeerEnded) {
  Ends ends;
  EXPECT_FALSE(ends.b->peer_ended());
  ends.a->send({{"last", 1}}, Deadline::in(channel_patience));
  ends.close_both_writers();
  EXPECT_TRUE(ends.b->peer_ended());
  EXPECT_EQ(ends.b->receive(Deadline::in(channel_patience)).first, (Json{{"last", 1}}));
  EXPECT_EQ(kind_of_receive(*ends.b), ErrorKind::io);
  EXPECT_THROW(ends.b->send({}, Deadline::in(channel_patience)), Error);
}

TEST(PeerChannel, RefusesHugeAndForeignHeaders) {
  for (const RawHeader& header : {RawHeader{.length = (1 << 20) + 1}, RawHeader{.length = 0xffffffffu},
                                  RawHeader{.length = 2, .descriptors = 9}, RawHeader{.magic = 1, .length = 2}}) {
    Ends ends;
    ends.write(&header, sizeof header);
    EXPECT_EQ(kind_of_receive(*ends.b), ErrorKind::invalid_input);
  }
}

TEST(PeerChannel, RefusesMissingDescriptorsAndBadJson) {
  for (const auto& [text, descriptors] : {std::pair{"{}", 1u}, std::pair{"{]", 0u}, std::pair{"\xff\xfe", 0u}}) {
    Ends ends;
    const RawHeader header{.length = 2, .descriptors = descriptors};
    ends.write(&header, sizeof header);
    ends.write(text, 2);
    EXPECT_EQ(kind_of_receive(*ends.b), ErrorKind::invalid_input);
  }
}

TEST(PeerChannel, NoticesAnEndInTheMiddle) {
  const RawHeader header{.length = 100};
  for (const std::size_t part : {std::size_t{1}, std::size_t{11}, sizeof header}) {
    Ends ends;
    ends.write(&header, part);
    ends.close_both_writers();
    EXPECT_EQ(kind_of_receive(*ends.b), ErrorKind::io) << part;
  }
}

TEST(PeerChannel, SurvivesRandomBytes) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    Ends ends;
    std::array<std::uint32_t, 64> noise{};
    for (auto& word : noise) word = static_cast<std::uint32_t>(random());
    if (round % 2 == 0) noise[0] = 0x43505757;
    if (round % 4 == 0) noise[1] %= 256;
    if (round % 8 == 0) noise[2] %= 10;
    ends.write(noise.data(), random() % sizeof noise);
    ends.close_both_writers();
    const ErrorKind kind = kind_of_receive(*ends.b);
    EXPECT_TRUE(kind == ErrorKind::invalid_input || kind == ErrorKind::io) << round;
  }
}

}  // namespace
}  // namespace waywiser
