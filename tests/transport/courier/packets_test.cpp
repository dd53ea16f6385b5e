#include "waywiser/transport/courier/packets.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "waywiser/transport/courier/packet_lines.hpp"

namespace waywiser {
namespace {

struct alignas(64) Line {
  Packet packets[4];
};

std::vector<std::byte> some_bytes(unsigned count) {
  std::vector<std::byte> bytes(count);
  for (unsigned i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7 + 1);
  return bytes;
}

// From packets that do not start a cache line, as in an order, and from those that do.
TEST(Packets, GoThereAndBack) {
  for (const unsigned first : {0u, 2u})
    for (unsigned bytes = 1; bytes <= 400; ++bytes) {
      std::vector<Line> lines(40);
      Packet* packets = lines.front().packets + first;
      const auto source = some_bytes(bytes);
      std::vector<std::byte> back(bytes + 1, std::byte{0xee});
      post_data(packets, source.data(), bytes, 5);
      unsigned next = 0;
      ASSERT_TRUE(take_reply(packets, back.data(), bytes, 5, next)) << bytes;
      ASSERT_TRUE(std::equal(source.begin(), source.end(), back.begin())) << bytes;
      ASSERT_EQ(back.back(), std::byte{0xee}) << bytes;
      ASSERT_EQ(next, (bytes + packet_bytes - 1) / packet_bytes);
      ASSERT_EQ(packets[next].number, 0u) << bytes;
    }
}

TEST(Packets, AreTakenAsTheyArrive) {
  std::vector<Line> lines(10);
  Packet* packets = lines.front().packets;
  const auto source = some_bytes(300);
  std::vector<std::byte> back(300);
  post_data(packets, source.data(), 300, 9);
  packets[6].number = 8;
  unsigned next = 0;
  EXPECT_FALSE(take_reply(packets, back.data(), 300, 9, next));
  EXPECT_EQ(next, 6u);
  packets[6].number = 9;
  EXPECT_TRUE(take_reply(packets, back.data(), 300, 9, next));
  EXPECT_EQ(back, source);
}

// Vectors of a whole line are used or not.
TEST(Packets, AreTheSameWithVectorsOfALine) {
  std::vector<Line> wide(3), narrow(3);
  const auto source = some_bytes(140);
  const unsigned written = write_packet_lines(wide.front().packets, source.data(), 140, 3);
  if (written == 0) GTEST_SKIP() << "this processor has no such vectors";
  EXPECT_EQ(written, 8u);
  for (Bytes i = 0; i < written; ++i)
    post_data(narrow.front().packets + i, source.data() + i * packet_bytes, packet_bytes, 3);
  EXPECT_EQ(std::memcmp(wide.data(), narrow.data(), sizeof(Packet) * written), 0);
}

}  // namespace
}  // namespace waywiser
