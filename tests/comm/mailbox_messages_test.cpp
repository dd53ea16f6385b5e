// Short messages through the memory that ranks of one machine share.
#include "waywiser/comm/shared_memory/mailbox_messages.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>

#include "tests/comm/test_ranks.hpp"
#include "tests/comm/with_variable.hpp"
#include "waywiser/comm/shared_memory/cores.hpp"
#include "waywiser/comm/shared_memory/lane.hpp"

namespace waywiser {
namespace {

// All lengths, with the tag of the message before and with another one, while the reader is up to some messages behind.
void send_through_lane(std::uint64_t same_tags, std::size_t stride, std::size_t longest) {
  const auto memory = std::make_unique<LaneMemory>();
  LaneWriter writer(memory.get());
  LaneReader reader(memory.get());
  std::vector<std::byte> data(longest);
  std::size_t written = 0, read = 0;
  const auto length = [&](std::size_t i) { return stride * i % (longest + 1); };
  while (read < 6000) {
    std::ranges::fill(data, static_cast<std::byte>(written | 1));  // never what an empty unit begins with
    const bool behind = written - read < written / 7 % 50;
    if (behind && writer.write(written / same_tags, data.data(), length(written))) {
      ++written;
      continue;
    }
    for (int taken = 0; taken < 3 && read < written; ++taken, ++read) {
      const LaneMessage next = reader.peek();
      ASSERT_TRUE(next);
      ASSERT_EQ(next.tag, read / same_tags);
      ASSERT_EQ(next.bytes, length(read));
      ASSERT_TRUE(
          std::all_of(next.data, next.data + next.bytes, [&](std::byte one) { return one == std::byte(read | 1); }));
      reader.pop();
    }
    if (read == written) {
      ASSERT_FALSE(reader.peek());
      ASSERT_TRUE(writer.write(written / same_tags, data.data(), length(written)));
      ++written;
    }
  }
}

TEST(Lane, MessagesOfAllLengthsComeInOrderRoundAndRound) {
  for (const std::uint64_t same_tags : {1, 2, 9})
    for (const std::size_t longest : {std::size_t{0}, std::size_t{8}, std::size_t{140}, longest_short})
      send_through_lane(same_tags, 97, longest);
  send_through_lane(100000, 0, 8);
}

void take(LaneReader& reader) {
  ASSERT_TRUE(reader.peek());
  reader.pop();
}

// The ring is turned back early while the reader keeps up: wherever it is then, the longest message has room.
TEST(Lane, HasRoomForAnyMessageWhenAllAreRead) {
  const std::vector<std::byte> data(longest_short, std::byte{5});
  for (std::size_t bytes = 0; bytes <= longest_short; bytes += 32) {
    const auto memory = std::make_unique<LaneMemory>();
    LaneWriter writer(memory.get());
    LaneReader reader(memory.get());
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(writer.write(1, data.data(), bytes)) << bytes;
      take(reader);
      ASSERT_TRUE(writer.write(2, data.data(), longest_short)) << bytes;
      take(reader);
    }
  }
}

TEST(Lane, IsEmptyUntilSomethingIsWritten) {
  const auto memory = std::make_unique<LaneMemory>();
  LaneReader reader(memory.get());
  EXPECT_FALSE(reader.peek());
  LaneWriter writer(memory.get());
  EXPECT_TRUE(writer.write(7, nullptr, 0));
  take(reader);
  EXPECT_FALSE(reader.peek());
}

// However full it gets, a reader that then takes all finds all.
TEST(Lane, WhatIsFullIsReadToTheEnd) {
  const std::vector<std::byte> data(longest_short, std::byte{5});
  for (std::size_t bytes : {std::size_t{0}, std::size_t{4}, std::size_t{12}, std::size_t{20}, std::size_t{1000}}) {
    const auto memory = std::make_unique<LaneMemory>();
    LaneWriter writer(memory.get());
    LaneReader reader(memory.get());
    for (int round = 0; round < 50; ++round) {
      std::size_t written = 0;
      while (writer.write(1, data.data(), bytes)) ++written;
      ASSERT_GT((written + 1) * (16 + bytes + 32), lane_units * unit_bytes / 2);
      for (std::size_t read = 0; read < written; ++read) take(reader);
      ASSERT_FALSE(reader.peek());
    }
  }
}

// More than a lane holds, taken in another order than they were sent; long ones in between.
void flood(Group& group) {
  constexpr int count = 3000;
  const int other = 1 - group.rank();
  std::vector<Future> under_way;
  std::vector<int> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 1000 * group.rank());
  const std::vector<double> large(5000, group.rank());
  for (int i = 0; i < count; ++i) under_way.push_back(group.send(std::span(&numbers[i], 1), other, i % 3, Mode::begin));
  under_way.push_back(group.send(std::span(large), other, 7, Mode::begin));
  std::vector<double> large_in(5000);
  group.recv(std::span(large_in), other, 7);
  require_that(large_in[4999] == other, "the long one, before the short ones");
  for (const int tag : {2, 0, 1})
    for (int i = tag; i < count; i += 3) {
      int got = -1;
      group.recv(std::span(&got, 1), other, tag);
      require_that(got == 1000 * other + i, "number " + std::to_string(i));
    }
  for (Future& future : under_way) future.wait();
  group.barrier();
}

TEST(MailboxMessages, MoreThanThereIsRoomFor) {
  EXPECT_EQ(TestRanks(2).in_processes(flood), no_problems);
  EXPECT_EQ(TestRanks(2).in_threads(flood), no_problems);
}

TEST(MailboxMessages, CanBeSwitchedOff) {
  const WithVariable variable("WAYWISER_MAILBOX", "off");
  EXPECT_EQ(TestRanks(2).in_processes(flood), no_problems);
}

TEST(MailboxMessages, AnUnknownWishIsRefused) {
  const WithVariable variable("WAYWISER_MAILBOX", "on");
  const Problems problems = TestRanks(2).in_processes(flood);
  EXPECT_EQ(problems.size(), 2u);
  for (const std::string& problem : problems)
    EXPECT_NE(problem.find("WAYWISER_MAILBOX='on' must be off, short or empty"), std::string::npos) << problem;
}

// Two ranks in this process, which take turns as the test says.
struct TwoMailboxes {
  explicit TwoMailboxes(std::size_t length = 80'000) : bytes(length) { introduce(); }
  const std::size_t bytes;
  std::array<HeldMemory, 2> held;
  std::array<MailboxMessages, 2> ranks{MailboxMessages(2, matched_bits, {longest_short, 0}, held[0]),
                                       MailboxMessages(2, matched_bits, {longest_short, 0}, held[1])};
  std::array<std::vector<std::byte>, 2> out{std::vector(bytes, std::byte{1}), std::vector(bytes, std::byte{2})}, in;
  std::array<Message, 2> sends, receives;

  void introduce() {
    std::vector<Introduction> both(2);
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      both[rank].rank = rank;
      both[rank].process = static_cast<std::uint64_t>(::getpid());
      both[rank].mailbox = ranks[rank].offer();
    }
    for (std::uint32_t rank = 0; rank < 2; ++rank) ranks[rank].introduce(both, rank);
  }
  void begin(Message& message, std::uint32_t rank, Tag label = 5) {
    message.receiving = &message == &receives[rank];
    message.peer = 1 - rank;
    message.tag = label << description_bits;
    message.bytes = bytes;
    in[rank].resize(bytes);
    message.into = in[rank].data();
    message.from = out[rank].data();
    message.receiving ? ranks[rank].receive(message) : ranks[rank].send(message, Awaited::later);
  }
};

TEST(MailboxMessages, BothRanksCopyHalfOfALongMessage) {
  TwoMailboxes two;
  two.begin(two.sends[0], 0);
  two.begin(two.receives[1], 1);
  two.ranks[1].progress();
  EXPECT_FALSE(is_complete(two.receives[1]));
  two.ranks[0].progress();
  EXPECT_TRUE(is_complete(two.sends[0]));
  two.ranks[1].progress();
  EXPECT_TRUE(is_complete(two.receives[1]));
  EXPECT_TRUE(two.in[1] == two.out[0]);
}

TEST(MailboxMessages, WhatIsNotLongTheReceiverCopiesAtOnce) {
  TwoMailboxes two(40'000);
  two.begin(two.sends[0], 0);
  two.begin(two.receives[1], 1);
  EXPECT_TRUE(is_complete(two.receives[1]));
  EXPECT_TRUE(two.in[1] == two.out[0]);
  two.ranks[0].progress();
  EXPECT_TRUE(is_complete(two.sends[0]));
}

// To keep it elsewhere would be one more copy, into memory that is new to the cache.
TEST(MailboxMessages, WhatNobodyAwaitsStaysInTheLane) {
  TwoMailboxes two(100);
  Message second;
  two.begin(two.receives[1], 1);
  two.begin(two.sends[0], 0);
  two.begin(second, 0, 6);
  EXPECT_TRUE(is_complete(second));
  EXPECT_TRUE(two.ranks[1].progress());
  EXPECT_TRUE(is_complete(two.receives[1]));
  EXPECT_FALSE(two.ranks[1].early(0, Tag{6} << description_bits));
  two.begin(two.receives[1], 1, 6);
  EXPECT_TRUE(is_complete(two.receives[1]));
}

// UCX need not be asked as often.
TEST(MailboxMessages, WhatWaitsForRoomIsAwaited) {
  TwoMailboxes two(longest_short);
  std::vector<Message> sends(lane_slots);
  for (Message& each : sends) two.begin(each, 0);
  EXPECT_TRUE(sends.back().is_open());
  EXPECT_TRUE(two.ranks[0].awaits_any());
  for (std::size_t i = 0; i < sends.size(); ++i) {
    two.begin(two.receives[1], 1);
    EXPECT_TRUE(is_complete(two.receives[1]));
    two.ranks[0].progress();
  }
  EXPECT_FALSE(sends.back().is_open());
  EXPECT_FALSE(two.ranks[0].awaits_any());
}

// Half of either would be two copies of each rank, into memory that the other rank has in its cache.
TEST(MailboxMessages, OfLongMessagesBothWaysEachRankCopiesItsOwn) {
  TwoMailboxes two;
  for (const std::uint32_t rank : {0u, 1u}) {
    two.begin(two.sends[rank], rank);
    two.begin(two.receives[rank], rank);
  }
  for (const std::uint32_t rank : {0u, 1u}) {
    two.ranks[rank].progress();
    EXPECT_TRUE(is_complete(two.receives[rank])) << rank;
    EXPECT_TRUE(two.in[rank] == two.out[1 - rank]);
  }
  two.ranks[0].progress();
  for (Message& each : two.sends) EXPECT_TRUE(is_complete(each));
}

TEST(Cores, RanksAreCrowdedWhereTheyWantTheSameCores) {
  const auto crowded = [](const std::vector<std::string>& cores) {
    std::vector<Introduction> ranks;
    for (const std::string& each : cores) {
      Introduction one;
      one.system = each == "elsewhere" ? "other" : "this";
      one.cores = each == "elsewhere" ? "0" : each;
      ranks.push_back(one);
    }
    return is_crowded(ranks, 0);
  };
  EXPECT_FALSE(crowded({"0", "1"}));
  EXPECT_FALSE(crowded({"0-1", "0-1"}));
  EXPECT_TRUE(crowded({"0-1", "0-1", "1"}));
  EXPECT_TRUE(crowded({"0", "0"}));
  EXPECT_FALSE(crowded({"0", "elsewhere"}));
  EXPECT_FALSE(crowded({"0-3,8", "8-9", "nonsense", "5-2", "-"}));
  EXPECT_FALSE(cores_of_this_process().empty());
}

}  // namespace
}  // namespace waywiser
