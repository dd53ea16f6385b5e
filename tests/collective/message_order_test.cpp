#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <thread>
#include <vector>

#include "tests/collective/disorderly_block.hpp"
#include "waywiser/collective/messages/message_body.hpp"

namespace waywiser::messages {
namespace {

using fused::DisorderlyBlock;

constexpr unsigned threads = 64;

// Two ranks on plain memory; every block of threads of a message is a thread of its own.
struct TwoRanks {
  TwoRanks() {
    for (auto& landing : landings) landing.resize(layout.bytes() / sizeof(Vector16) + 1);
  }
  Terms terms(unsigned rank, double deadline) {
    Terms terms{{},
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
  std::array<std::unique_ptr<State>, 2> states{std::make_unique<State>(), std::make_unique<State>()};
  std::array<fused::Notice, 2> notices;
  std::array<fused::Exposed, std::size_t{fused::exposed_slots + 1} * most_ranks> exposed;
};

Part part_of(Kind kind, std::vector<std::byte>& data, unsigned peer, unsigned blocks) {
  const std::uint64_t piece = kind == Kind::packets ? 64 : kind == Kind::lines ? 3 * bytes_of_pair : 160;
  return {data.data(), data.size(), piece, peer, blocks, 0, kind};
}

template <typename Carry>
void each_block(const Terms& terms, const Part& part, std::uint64_t seed, Carry carry) {
  std::vector<std::jthread> grid;
  for (unsigned channel = 0; channel < part.blocks; ++channel)
    grid.emplace_back([&, channel] {
      DisorderlyBlock block(channel, part.blocks, threads, seed * 64 + channel);
      MessageBody<DisorderlyBlock, Fit::any> body(block, terms, part, false, channel);
      carry(body);
    });
}

std::vector<std::byte> made_up(unsigned rank, int message, std::size_t bytes) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    data[i] = static_cast<std::byte>(i * 7 + std::size_t{rank} * 11 + static_cast<std::size_t>(message) * 29 + i / 251);
  return data;
}

// Of less than a piece, of some, and of more than there are slots; from message to message of another kind and of other
// numbers of blocks.
TEST(MessageOrder, MessagesAreRightWhenStoresArriveLateAndInAnyOrder) {
  TwoRanks ranks;
  std::array<int, 2> wrong{};
  {
    std::vector<std::jthread> all;
    for (unsigned rank = 0; rank < 2; ++rank)
      all.emplace_back([&, rank] {
        const Terms terms = ranks.terms(rank, 20);
        for (int message = 0; message < 40; ++message) {
          const auto kind = static_cast<Kind>(message % 3);
          const std::size_t bytes = 1 + static_cast<std::size_t>(message * message) * 5 % 9000;
          const unsigned blocks = 1 + static_cast<unsigned>(message) % 3;
          std::vector<std::byte> give = made_up(rank, message, bytes), take(bytes + 16, std::byte{0x5a});
          std::vector<std::byte> wanted = made_up(1 - rank, message, bytes);
          wanted.resize(bytes + 16, std::byte{0x5a});
          Part to = part_of(kind, give, 1 - rank, blocks), from = part_of(kind, take, 1 - rank, blocks);
          from.bytes = bytes;
          const auto seed = static_cast<std::uint64_t>(message * 2) + rank;
          std::jthread giver([&] { each_block(terms, to, seed, [](auto& body) { body.send(); }); });
          each_block(terms, from, seed + 1000, [](auto& body) { body.receive(); });
          giver.join();
          wrong[rank] += take != wanted ? 1 : 0;
        }
      });
  }
  EXPECT_EQ(wrong, (std::array<int, 2>{}));
  for (const auto& state : ranks.states) EXPECT_EQ(state->failed, 0u);
}

TEST(MessageOrder, WhatNobodySendsEndsAtTheDeadline) {
  for (const Kind kind : {Kind::packets, Kind::lines, Kind::bulk}) {
    TwoRanks ranks;
    const Terms terms = ranks.terms(0, 1e-3);
    std::vector<std::byte> take(3000, std::byte{1});
    each_block(terms, part_of(kind, take, 1, 2), 5, [](auto& body) { body.receive(); });
    EXPECT_NE(ranks.states[0]->failed, 0u);
    EXPECT_EQ(ranks.notices[0].failed_peer, 2u);
  }
}

}  // namespace
}  // namespace waywiser::messages
