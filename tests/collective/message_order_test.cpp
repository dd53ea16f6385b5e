#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "tests/collective/disorderly_block.hpp"
#include "waywiser/collective/messages/message_body.hpp"
#include "waywiser/collective/on_stream/description.hpp"
#include "waywiser/collective/on_stream/failure.hpp"

namespace waywiser::messages {
namespace {

using fused::DisorderlyBlock;

constexpr unsigned threads = 64;

// Two ranks on plain memory; every block of a message is one thread.
struct TwoRanks {
  TwoRanks() {
    for (auto& landing : landings) landing.resize(layout.bytes() / sizeof(Vector16) + 1);
  }
  MessageArguments terms(unsigned rank, double deadline) {
    MessageArguments terms{{},
                           states[rank].get(),
                           &notices[rank],
                           exposed.data(),
                           layout,
                           rank,
                           static_cast<std::uint64_t>(deadline * 1e9)};
    for (unsigned peer = 0; peer < 2; ++peer) terms.landing[peer] = reinterpret_cast<std::byte*>(landings[peer].data());
    return terms;
  }

  Layout layout{2};
  std::array<std::vector<Vector16>, 2> landings;
  std::array<std::unique_ptr<MessageState>, 2> states{std::make_unique<MessageState>(),
                                                      std::make_unique<MessageState>()};
  std::array<block::Notice, 2> notices;
  std::array<block::Exposed, std::size_t{block::exposed_slots + 1} * block::max_ranks> exposed;
};

void describe(MessagePart& part, std::size_t bytes) {
  const on_stream::Description description{on_stream::Description::message, DataType::uint8, {}, -1, bytes};
  part.description = description.word();
  part.signature = std::uint64_t{description.of_message()} << 32;
}

MessagePart part_of(Kind kind, std::vector<std::byte>& data, unsigned peer, unsigned blocks) {
  const std::uint64_t piece = kind == Kind::ll ? 64 : kind == Kind::ll128 ? 3 * block::data_bytes_of_pair : 160;
  MessagePart part{data.data(), data.size(), piece, peer, blocks, 0, kind};
  describe(part, data.size());
  return part;
}

// False: a block has trapped, and the others have ended with it.
template <typename Carry>
bool each_block(const MessageArguments& terms, const MessagePart& part, std::uint64_t seed, Carry carry,
                bool places = false) {
  std::atomic<bool> trapped = false;
  {
    std::vector<std::jthread> grid;
    for (unsigned channel = 0; channel < part.blocks; ++channel)
      grid.emplace_back([&, channel] {
        try {
          DisorderlyBlock block(channel, part.blocks, threads, seed * 64 + channel);
          MessageBody<DisorderlyBlock, Fit::any> body(block, terms, part, places, channel);
          carry(body);
        } catch (const Trap&) {
          trapped = true;
          on_stream::stop(*terms.notice);
        }
      });
  }
  return !trapped;
}

std::vector<std::byte> made_up(unsigned rank, int message, std::size_t bytes) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    data[i] = static_cast<std::byte>(i * 7 + std::size_t{rank} * 11 + static_cast<std::size_t>(message) * 29 + i / 251);
  return data;
}

// Messages shorter than a piece, of some pieces, and of more pieces than slots; kinds and numbers of blocks change from
// message to message.
TEST(MessageOrder, MessagesAreRightWhenStoresArriveLateAndInAnyOrder) {
  TwoRanks ranks;
  std::array<int, 2> wrong{};
  {
    std::vector<std::jthread> all;
    for (unsigned rank = 0; rank < 2; ++rank)
      all.emplace_back([&, rank] {
        const MessageArguments terms = ranks.terms(rank, 20);
        for (int message = 0; message < 40; ++message) {
          const auto kind = static_cast<Kind>(message % 3);
          const std::size_t bytes = 1 + static_cast<std::size_t>(message * message) * 5 % 9000;
          const unsigned blocks = 1 + static_cast<unsigned>(message) % 3;
          std::vector<std::byte> give = made_up(rank, message, bytes), take(bytes + 16, std::byte{0x5a});
          std::vector<std::byte> wanted = made_up(1 - rank, message, bytes);
          wanted.resize(bytes + 16, std::byte{0x5a});
          MessagePart to = part_of(kind, give, 1 - rank, blocks), from = part_of(kind, take, 1 - rank, blocks);
          from.bytes = bytes;
          from.description = to.description;
          from.signature = to.signature;
          const auto seed = static_cast<std::uint64_t>(message * 2) + rank;
          to = with_places(terms, to, true);
          from = with_places(terms, from, false);
          std::jthread giver([&] { each_block(terms, to, seed, [](auto& body) { body.send(); }); });
          each_block(terms, from, seed + 1000, [](auto& body) { body.receive(); });
          giver.join();
          wrong[rank] += take != wanted ? 1 : 0;
        }
      });
  }
  EXPECT_EQ(wrong, (std::array<int, 2>{}));
  for (const block::Notice& notice : ranks.notices) EXPECT_FALSE(on_stream::failure_in(notice));
}

// Faults: gpus N
TEST(MessageOrder, WhatNobodySendsTrapsAtTheDeadline) {
  for (const Kind kind : {Kind::ll, Kind::ll128, Kind::bulk}) {
    TwoRanks ranks;
    const MessageArguments terms = ranks.terms(0, 1e-3);
    std::vector<std::byte> take(3000, std::byte{1});
    EXPECT_FALSE(
        each_block(terms, with_places(terms, part_of(kind, take, 1, 2), false), 5, [](auto& body) { body.receive(); }));
    EXPECT_EQ(take, std::vector<std::byte>(3000, std::byte{1}));
    const auto failure = on_stream::failure_in(ranks.notices[0]);
    ASSERT_TRUE(failure);
    EXPECT_STREQ(on_stream::error_of(*failure, 0, {}, 1e-3, "").what(),
                 "rank 0: rank 1 did not send within 1.00 ms in a message of 3000 uint8");
  }
}

// A wrong message after some right ones of the same and other kinds. The receiver gets an error, and its array is
// unchanged, also if it is exposed and the sender has more than fits. Faults: gpus P
TEST(MessageOrder, AMessageThatIsNotTheOneThatIsReceivedIsToldAndNotTaken) {
  for (const Kind given : {Kind::ll, Kind::ll128, Kind::bulk})
    for (const Kind taken : {Kind::ll, Kind::ll128, Kind::bulk})
      for (const bool places : {false, true}) {
        if (places && given == Kind::ll) continue;  // only bulk messages are stored there
        TwoRanks ranks;
        const MessageArguments sender = ranks.terms(1, 60), receiver = ranks.terms(0, 60);
        std::vector<std::byte> give = made_up(1, 0, 3000), take(4000, std::byte{1});
        const auto exchange = [&](const MessagePart& to, MessagePart from, std::uint64_t seed) {
          std::jthread giver([&] {
            each_block(sender, with_places(sender, to, true), seed, [](auto& body) { body.send(); }, places);
          });
          from.slot = places ? 1 : 0;
          const bool came = each_block(
              receiver, with_places(receiver, from, false), seed + 9, [](auto& body) { body.receive(); }, places);
          if (!came) on_stream::stop(*sender.notice);  // it waits for room
          return came;
        };
        if (places) ranks.exposed[std::size_t{1} * block::max_ranks] = {take.data(), take.size()};
        for (int before = 0; before < 3; ++before) {
          MessagePart to = part_of(given, give, 0, 2), from = part_of(given, take, 1, 2);
          from.bytes = to.bytes;
          from.description = to.description;
          from.signature = to.signature;
          ASSERT_TRUE(exchange(to, from, static_cast<std::uint64_t>(before)));
        }
        take.assign(4000, std::byte{1});
        MessagePart from = part_of(taken, take, 1, 2);
        from.bytes = 2000;
        describe(from, 2000);
        EXPECT_FALSE(exchange(part_of(given, give, 0, 2), from, 50));
        EXPECT_EQ(take, std::vector<std::byte>(4000, std::byte{1}));
        const auto failure = on_stream::failure_in(ranks.notices[0]);
        ASSERT_TRUE(failure);
        EXPECT_STREQ(on_stream::error_of(*failure, 0, {}, 60, "").what(),
                     "rank 0 receives 2000 uint8 from rank 1, which sends 3000 uint8");
      }
}

// The signature gives type and count back, unless the count is very large. Different calls have different signatures,
// even without the lowest bit, which bulk messages drop.
TEST(MessageOrder, ASignatureSaysWhatTheMessageIs) {
  std::set<std::uint32_t> seen;
  std::size_t messages = 0;
  for (int type = 0; type < data_types; ++type)
    for (const std::uint64_t count :
         {1ull, 2ull, 100ull, (1ull << 26) - 1, 1ull << 26, (1ull << 26) + 1, 1ull << 27, 1ull << 40}) {
      const on_stream::Description message{on_stream::Description::message, static_cast<DataType>(type), {}, -1, count};
      const std::uint32_t signature = message.of_message();
      const std::string told = text(on_stream::Description::from_message(signature), 0);
      EXPECT_EQ(told, (count < 1ull << 26 ? std::to_string(count) : "another number of") + " " +
                          std::string(name(message.type)));
      seen.insert(signature >> 1);
      ++messages;
    }
  EXPECT_EQ(seen.size(), messages);
}

}  // namespace
}  // namespace waywiser::messages
