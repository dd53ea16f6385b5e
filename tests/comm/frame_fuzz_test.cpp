#include <gtest/gtest.h>

#include <random>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/bootstrap/handshake.hpp"
#include "waywiser/comm/bootstrap/introduction.hpp"

namespace waywiser {
namespace {

// Everything that a stranger's bytes pass through; anything but a refusal in words is a failure.
void read_all(std::span<const std::byte> bytes, std::mt19937& random) {
  FrameReader reader(4096);
  try {
    while (!bytes.empty()) {
      const std::size_t part = std::min<std::size_t>(bytes.size(), 1 + random() % 40);
      reader.feed(bytes.first(part));
      bytes = bytes.subspan(part);
      while (const auto frame = reader.next()) {
        ASSERT_LE(frame->body.size(), 4096u);
        for (int how = 0; how < 6; ++how) try {
            WireReader words(frame->body, "table of ranks");
            if (how == 0) read_introduction(words);
            if (how == 1) read_hello(*frame);
            if (how == 2) reason_in(*frame);
            if (how == 3) read_digest(*frame);
            if (how == 4) error_in(*frame);
            if (how == 5) read_table(words, 4);
          } catch (const Error& error) {
            ASSERT_EQ(error.kind(), ErrorKind::invalid_input);
          }
      }
    }
  } catch (const Error& error) {
    ASSERT_EQ(error.kind(), ErrorKind::invalid_input);
    ASSERT_LT(std::string(error.what()).size(), 200u);
  }
}

std::vector<std::byte> good_conversation() {
  WireWriter introduction;
  write(introduction, {1,
                       4,
                       "0.1.0",
                       "abc",
                       "machine",
                       "host",
                       77,
                       std::vector<std::byte>(300),
                       false,
                       "",
                       "",
                       "1.22.0",
                       {{"tcp on eth0", std::vector<std::byte>(100)}, {"tcp on eth1", {}}}});
  std::vector<std::byte> all;
  for (const auto& part :
       {frame_bytes(FrameKind::hello, hello_bytes({1, 2, random_nonce()})),
        frame_bytes(FrameKind::proof, random_nonce()), frame_bytes(FrameKind::join, introduction.bytes()),
        frame_bytes(FrameKind::failed, failed_frame(ErrorKind::timeout, "because").body)})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

// Faults: strangers F
TEST(FrameFuzz, RandomBytes) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::byte> bytes(random() % 200);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    read_all(bytes, random);
  }
}

// Faults: strangers F
TEST(FrameFuzz, ChangedMessages) {
  std::mt19937 random(2);
  const std::vector<std::byte> good = good_conversation();
  for (int round = 0; round < 5000; ++round) {
    std::vector<std::byte> bytes = good;
    for (auto changes = 1 + random() % 4; changes > 0; --changes)
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    if (round % 3 == 0) bytes.resize(random() % bytes.size());
    read_all(bytes, random);
  }
}

TEST(WireReader, NamesItsMessageWhenWhoMadeTheNameHasGone) {
  const std::string name = "a message whose name is too long to lie in the string itself";
  const WireReader reader({}, name + " or in its copy");
  const std::vector<std::string> others(100, std::string(name.size() + 15, 'x'));
  try {
    reader.refuse("why");
    FAIL() << "nothing was refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), name + " or in its copy: why");
  }
}

TEST(FrameReader, GivesBackWhatWasWritten) {
  FrameReader reader(4096);
  for (const std::byte byte : good_conversation()) reader.feed({&byte, 1});
  EXPECT_EQ(reader.next()->kind, FrameKind::hello);
  EXPECT_EQ(reader.next()->kind, FrameKind::proof);
  const auto join = reader.next();
  WireReader words(join->body, "introduction");
  EXPECT_EQ(read_introduction(words).process, 77u);
  const Error failed = error_in(*reader.next());
  EXPECT_EQ(failed.kind(), ErrorKind::timeout);
  EXPECT_STREQ(failed.what(), "because");
  EXPECT_FALSE(reader.next());
}

// Faults: strangers F
TEST(FrameReader, GivesBackFramesThatCameTogether) {
  FrameReader reader(4096);
  for (int i = 1; i <= 3; ++i)
    reader.feed(frame_bytes(FrameKind::share, std::vector<std::byte>(100u * i, std::byte{7})));
  for (int i = 1; i <= 3; ++i) EXPECT_EQ(reader.next()->body, std::vector<std::byte>(100u * i, std::byte{7}));
  EXPECT_FALSE(reader.next().has_value());
}

TEST(TableOfRanks, GivesBackWhatWasWritten) {
  std::vector<Introduction> ranks(4);
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    Introduction& one = ranks[rank];
    one = {rank, 4, "0.1.0", "plan", rank < 2 ? "a machine" : "another", "host", 70 + rank, {}, rank == 1, "0-1", ""};
    one.reach = std::string(rank, 'x');
  }
  ranks[2].address.resize(100);
  ranks[2].rails = {{"tcp on eth0", std::vector<std::byte>(100)}};
  WireWriter writer;
  write_table(writer, ranks);
  WireReader reader(writer.bytes(), "table");
  const std::vector<Introduction> table = read_table(reader, 4);
  reader.end();
  const auto bytes_of_one = [](const Introduction& one) {
    WireWriter words;
    write(words, one);
    return words.bytes();
  };
  for (std::size_t rank = 0; rank < 4; ++rank) EXPECT_EQ(bytes_of_one(table[rank]), bytes_of_one(ranks[rank]));
}

TEST(FrameReader, RefusesALengthBeforeItsBytesCome) {
  FrameReader reader(128);
  WireWriter header;
  header.number(std::uint32_t{0x31475757});
  header.number(std::uint8_t{1});
  header.number(std::uint32_t{0xffffffff});
  reader.feed(header.bytes());
  EXPECT_THROW(reader.next(), Error);
}

}  // namespace
}  // namespace waywiser
