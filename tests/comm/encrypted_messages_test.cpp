#include "waywiser/comm/network/encrypted_messages.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <random>
#include <vector>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr Seconds patience = 20;
constexpr Tag mask = ~Tag{0} << 20;
constexpr Tag tag_of(unsigned label) { return Tag{label} << 20; }

TlsKey key_of(int number) {
  TlsKey key{};
  key.back() = static_cast<std::byte>(number);
  return key;
}

std::vector<std::byte> bytes_of_kind(std::size_t bytes, unsigned kind) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(i * 31 + i / 253 + kind);
  return data;
}

// Ranks of so many machines in one process, each with an end of its own.
class EncryptedMessagesTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!ssl_library().usable()) GTEST_SKIP() << ssl_library().why_not();
  }
  void meet(std::size_t ranks, const std::vector<int>& keys = {1}, const EncryptedMessages::Options& options = {}) {
    ends_.clear();
    std::vector<Introduction> introductions(ranks);
    for (std::size_t i = 0; i < ranks; ++i) {
      ends_.push_back(std::make_unique<EncryptedMessages>("127.0.0.1", key_of(keys[i % keys.size()]), mask, options));
      introductions[i].rank = static_cast<std::uint32_t>(i);
      introductions[i].machine_id = std::to_string(i);
      introductions[i].encrypted = ends_.back()->offer();
    }
    for (std::size_t i = 0; i < ranks; ++i) ends_[i]->introduce(introductions, static_cast<std::uint32_t>(i));
  }
  void send(std::uint32_t from, std::uint32_t to, Tag tag, const std::vector<std::byte>& data, Message& message) {
    message.peer = to;
    message.tag = tag;
    message.from = data.data();
    message.bytes = data.size();
    ends_[from]->send(message, Awaited::later);
  }
  void receive(std::uint32_t at, std::uint32_t from, Tag tag, std::vector<std::byte>& into, Message& message) {
    message.peer = from;
    message.tag = tag;
    message.into = into.data();
    message.bytes = into.size();
    ends_[at]->receive(message);
  }
  template <typename Done>
  void turns_until(Done done) {
    const Deadline deadline = Deadline::in(patience);
    while (!done()) {
      for (const auto& end : ends_) end->progress();
      if (deadline.passed()) throw Error(ErrorKind::timeout, "the messages do not come to an end");
    }
  }
  void turns(int count) {
    for (int i = 0; i < count; ++i)
      for (const auto& end : ends_) end->progress();
  }
  std::vector<std::unique_ptr<EncryptedMessages>> ends_;
};

TEST_F(EncryptedMessagesTest, ArriveWhetherAskedForBeforeOrAfter) {
  meet(2);
  for (const bool asked_first : {true, false})
    for (const std::size_t bytes : {0, 1, 100, 16352, 16353, 65536, 65537, 3000000}) {
      const auto data = bytes_of_kind(bytes, asked_first ? 1 : 2);
      std::vector<std::byte> got(bytes);
      Message out, in;
      if (asked_first) receive(1, 0, tag_of(7), got, in);
      send(0, 1, tag_of(7), data, out);
      if (!asked_first) {
        turns(5);
        receive(1, 0, tag_of(7), got, in);
      }
      turns_until([&] { return !out.is_open() && !in.is_open(); });
      EXPECT_EQ(data, got) << bytes;
      EXPECT_EQ(in.info.bytes, bytes);
      EXPECT_EQ(in.info.tag, tag_of(7));
    }
}

// The rest of a record that was read in part is no longer in the socket.
TEST_F(EncryptedMessagesTest, ManyThatComeAtOnceAllArrive) {
  const auto data = bytes_of_kind(100, 3);
  for (std::size_t count = 28; count < 70; ++count) {
    meet(2);
    std::vector<Message> out(count), in(count);
    std::vector<std::vector<std::byte>> got(count, std::vector<std::byte>(100));
    for (std::size_t i = 0; i < count; ++i) receive(1, 0, tag_of(1), got[i], in[i]);
    for (std::size_t i = 0; i < count; ++i) send(0, 1, tag_of(1), data, out[i]);
    turns_until([&] { return std::ranges::none_of(in, &Message::is_open); });
    for (const auto& one : got) EXPECT_EQ(one, data);
  }
}

// Messages of all kinds, in both directions, over connections that last for a few of them.
TEST_F(EncryptedMessagesTest, KeysAreRenewedBetweenMessages) {
  meet(2, {1}, {false, 300'000});
  constexpr std::size_t count = 60;
  std::mt19937 random(7);
  std::vector<Message> out(2 * count), in(2 * count);
  std::vector<std::vector<std::byte>> data, got;
  for (std::size_t i = 0; i < 2 * count; ++i) {
    data.push_back(bytes_of_kind(random() % 2 == 0 ? random() % 1000 : random() % 200000, static_cast<unsigned>(i)));
    got.emplace_back(data.back().size());
  }
  for (std::size_t i = 0; i < 2 * count; ++i) {
    const auto from = static_cast<std::uint32_t>(i % 2);
    if (random() % 2 == 0) turns(1);
    send(from, 1 - from, tag_of(1), data[i], out[i]);
    receive(1 - from, from, tag_of(1), got[i], in[i]);
  }
  turns_until(
      [&] { return std::ranges::none_of(in, &Message::is_open) && std::ranges::none_of(out, &Message::is_open); });
  EXPECT_EQ(data, got);
  for (const auto& end : ends_) EXPECT_EQ(end->broken(), std::nullopt);
}

// Each tag's messages are taken in their order, be the tags asked for in any.
TEST_F(EncryptedMessagesTest, ArriveInTheOrderOfEachTag) {
  meet(3);
  std::mt19937 random(5);
  constexpr unsigned tags = 4, each = 12;
  struct One {
    std::vector<std::byte> data, got;
    Message out, in;
  };
  std::vector<std::vector<One>> all(tags);
  std::vector<unsigned> order;
  for (unsigned tag = 0; tag < tags; ++tag) {
    all[tag].resize(each);
    for (unsigned i = 0; i < each; ++i) {
      const std::size_t bytes = random() % 3 == 0 ? 70000 + random() % 100000 : random() % 3000;
      all[tag][i].data = bytes_of_kind(bytes, tag * each + i);
      all[tag][i].got.resize(bytes);
      order.push_back(tag);
    }
  }
  std::vector<unsigned> sent(tags), asked(tags);
  std::shuffle(order.begin(), order.end(), random);
  for (const unsigned tag : order) {
    One& one = all[tag][sent[tag]++];
    send(0, 2, tag_of(tag), one.data, one.out);
  }
  std::shuffle(order.begin(), order.end(), random);
  for (const unsigned tag : order) {
    One& one = all[tag][asked[tag]++];
    receive(2, 0, tag_of(tag), one.got, one.in);
    turns(static_cast<int>(random() % 3));
  }
  turns_until([&] {
    return std::ranges::all_of(all, [](const auto& list) {
      return std::ranges::all_of(list, [](const One& one) { return !one.out.is_open() && !one.in.is_open(); });
    });
  });
  for (const auto& list : all)
    for (const One& one : list) EXPECT_EQ(one.data, one.got);
}

TEST_F(EncryptedMessagesTest, AnotherLengthIsToldAndNothingIsWritten) {
  meet(2);
  for (const std::size_t bytes : {50, 5000, 500000}) {
    const auto data = bytes_of_kind(bytes, 1);
    std::vector<std::byte> got(bytes / 2);
    Message out, in;
    receive(1, 0, tag_of(1), got, in);
    send(0, 1, tag_of(1), data, out);
    turns_until([&] { return !in.is_open(); });
    EXPECT_EQ(in.info.bytes, bytes);
    EXPECT_EQ(got, std::vector<std::byte>(bytes / 2));
    ends_[0]->cancel(out);
  }
}

TEST_F(EncryptedMessagesTest, AReceiveThatIsGivenUpIsNotWrittenTo) {
  meet(2);
  for (const std::size_t bytes : {500, 5000000}) {
    const auto data = bytes_of_kind(bytes, 1);
    std::vector<std::byte> given_up(bytes), next(10);
    Message out, in, out_next, in_next;
    receive(1, 0, tag_of(1), given_up, in);
    send(0, 1, tag_of(1), data, out);
    if (bytes > 1000) turns_until([&] { return given_up.front() != std::byte{}; });
    ends_[1]->cancel(in);
    const std::vector<std::byte> as_left = given_up;
    const auto data_next = bytes_of_kind(10, 9);
    receive(1, 0, tag_of(2), next, in_next);
    send(0, 1, tag_of(2), data_next, out_next);
    turns_until([&] { return !in_next.is_open(); });
    EXPECT_EQ(next, data_next);
    EXPECT_EQ(given_up, as_left);
    ends_[0]->cancel(out);
  }
}

// Half a message must not be taken for the whole, nor the next message for its rest.
TEST_F(EncryptedMessagesTest, ASendThatIsGivenUpHalfWayBreaksTheConnection) {
  meet(2);
  const auto data = bytes_of_kind(50'000'000, 1);
  std::vector<std::byte> got(data.size());
  Message out, in;
  receive(1, 0, tag_of(1), got, in);
  send(0, 1, tag_of(1), data, out);
  turns_until([&] { return got.front() == data.front() && got[1] == data[1]; });
  ASSERT_TRUE(out.is_open());
  ends_[0]->cancel(out);
  turns_until([&] { return ends_[1]->broken().has_value(); });
  EXPECT_TRUE(in.is_open());
  EXPECT_TRUE(ends_[1]->broken()->starts_with("the encrypted connection to rank 0 broke: "));
  ends_[1]->cancel(in);
}

TEST_F(EncryptedMessagesTest, ARankWithAnotherKeyGetsNothing) {
  meet(2, {1, 2});
  const auto data = bytes_of_kind(100, 1);
  std::vector<std::byte> got(100);
  Message out, in;
  receive(1, 0, tag_of(1), got, in);
  send(0, 1, tag_of(1), data, out);
  turns_until([&] { return ends_[0]->broken().has_value(); });
  EXPECT_TRUE(in.is_open());
  EXPECT_EQ(got, std::vector<std::byte>(100));
  ends_[0]->cancel(out);
  ends_[1]->cancel(in);
}

TEST_F(EncryptedMessagesTest, StrangersAreNobody) {
  meet(2);
  std::vector<Descriptor> strangers;
  const std::string noise(300, '\x16');
  for (int i = 0; i < 100; ++i) {
    strangers.push_back(connect_to(parse_endpoint(ends_[1]->offer()), Deadline::in(patience)));
    if (i % 2 == 0) {
      ASSERT_GT(::send(strangers.back().number(), noise.data(), noise.size(), MSG_NOSIGNAL), 0);
    }
    turns(1);
  }
  const auto data = bytes_of_kind(100, 1);
  std::vector<std::byte> got(100);
  Message out, in;
  receive(1, 0, tag_of(1), got, in);
  send(0, 1, tag_of(1), data, out);
  turns_until([&] { return !in.is_open() && !out.is_open(); });
  EXPECT_EQ(got, data);
  EXPECT_FALSE(ends_[1]->broken().has_value());
}

}  // namespace
}  // namespace waywiser
