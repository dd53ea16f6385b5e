// Ranks that meet, share and hear of each other's end through a tree: in chains and trees of two branches, since a
// group of up to 17 ranks is a star otherwise.
#include "waywiser/comm/bootstrap/rank_tree.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>

#include "tests/comm/faults.hpp"
#include "tests/comm/rendezvous_test_base.hpp"
#include "tests/comm/with_variable.hpp"
#include "waywiser/comm/bootstrap/sharing.hpp"
#include "waywiser/comm/session/lifeline.hpp"

namespace waywiser {
namespace {

class Tree : public Rendezvous, public ::testing::WithParamInterface<const char*> {
 protected:
  static constexpr Seconds patience = 20;
  const WithVariable branches{"WAYWISER_BRANCHES", GetParam()};

  static std::vector<std::byte> part(int rank) {
    return std::vector<std::byte>(static_cast<std::size_t>(rank) * 5000, static_cast<std::byte>(rank));
  }
  // Of each rank, at an address or within the machine.
  template <typename Then>
  static auto all_of(int size, bool at_address, Then then) {
    Endpoint address{"127.0.0.1", 0};
    if (at_address) address.port = port_of(listen_on(address));
    std::vector<std::future<decltype(then(0, std::declval<Muster&>()))>> ranks;
    for (int rank = size - 1; rank >= 0; --rank) {
      const Launch mine = at_address ? launch_at(address, rank, size) : launch(rank, size);
      ranks.insert(ranks.begin(), std::async(std::launch::async, [=] {
                     Muster muster = meet(mine, introduction(mine), Deadline::in(patience));
                     return then(rank, muster);
                   }));
    }
    return ranks;
  }
  template <typename Done>
  static void await(Done done) {
    for (const Deadline deadline = Deadline::in(patience); !done() && !deadline.passed();) ::usleep(500);
    EXPECT_TRUE(done());
  }
};

TEST(RankTree, EveryRankIsReachedThroughTheOneAbove) {
  for (const int branches : {1, 2, 3, 16})
    for (const int size : {1, 2, 3, 17, 18, 300}) {
      std::size_t edges = 0;
      for (int rank = 0; rank < size; ++rank) {
        const RankTree tree{rank, size, branches};
        std::size_t below = 0;
        for (int other = 0; other < size; ++other) below += tree.towards(other) >= 0 ? 1u : 0u;
        EXPECT_EQ(below, tree.count_below());
        EXPECT_EQ(tree.below().empty(), !tree.is_above_any(rank));
        edges += tree.below().size();
        for (const int other : tree.below()) EXPECT_EQ((RankTree{other, size, branches}.above()), rank);
      }
      EXPECT_EQ(edges, static_cast<std::size_t>(size - 1));
    }
}

TEST(RankTree, AWrongNumberOfBranchesIsRefused) {
  for (const char* text : {"0", "-1", "2x", "1025"}) {
    const WithVariable branches("WAYWISER_BRANCHES", text);
    EXPECT_THROW(branches_of_tree(), Error);
  }
}

TEST_P(Tree, AllHaveAllAndFewConnections) {
  for (const bool at_address : {false, true})
    for (auto& rank : all_of(8, at_address, [](int self, Muster& muster) {
           EXPECT_LE(muster.lines.size(), static_cast<std::size_t>(muster.branches) + 1);
           EXPECT_EQ(muster.ranks.size(), 8u);
           const auto parts = share_with_all(muster, self, part(self), Deadline::in(patience));
           for (int other = 0; other < 8; ++other)
             EXPECT_TRUE(std::ranges::equal(parts[static_cast<std::size_t>(other)], part(other)));
           return muster.tag_key;
         }))
      EXPECT_NE(rank.get(), 0u);
}

// Faults: forming W
TEST_P(Tree, AllHearWhyOneRefuses) {
  for (const bool at_address : {false, true}) {
    auto ranks = all_of(8, at_address, [](int self, Muster& muster) -> std::string {
      if (self == 5) {
        tell_refusal(muster, "rank 5: it has no room");
        return "rank 5: it has no room";
      }
      share_with_all(muster, self, part(self), Deadline::in(patience));
      return "no error";
    });
    for (auto& rank : ranks) {
      std::string words;
      try {
        words = rank.get();
      } catch (const Error& error) {  // perhaps it was still on its way to its place
        words = error.what();
      }
      EXPECT_TRUE(words.ends_with("rank 5: it has no room")) << words;
    }
  }
}

// A rank may be told all and go on before another one finds that it cannot.
TEST_P(Tree, WhoHasGoneOnHearsWhyAnotherRefuses) {
  std::atomic<int> heard = 0;
  auto ranks = all_of(8, false, [&](int self, Muster& muster) {
    share_with_all(muster, self, part(self), Deadline::in(patience));
    if (self == 1) {
      tell_refusal(muster, "rank 1: it has no room");
      await([&] { return heard == 7; });
      return std::string("rank 1: it has no room");
    }
    Lifeline line(self, std::move(muster), Lifeline::Callbacks{[] { return std::string(); }});
    await([&] { return line.failure() != nullptr; });
    ++heard;
    return *line.failure();
  });
  for (auto& rank : ranks) EXPECT_EQ(rank.get(), "rank 1: it has no room");
}

TEST_P(Tree, RanksWithAnotherTreeAreRefused) {
  auto host = come(launch(0, 2), introduction(launch(0, 2)));
  auto other = std::async(std::launch::async, [] {
    return meet(launch(1, 2), introduction(launch(1, 2)), Deadline::in(patience), {}, {}, 7);
  });
  const std::string words = std::string("rank 1 on here has WAYWISER_BRANCHES=7, rank 0 ") + GetParam();
  EXPECT_EQ(complaint(std::move(other)), "rank 0 refused this rank: " + words);
  EXPECT_EQ(complaint(std::move(host)), words);
}

// Faults: forming S
TEST_P(Tree, WhoIsMissingIsNamedEverywhere) {
  std::vector<std::future<Muster>> ranks;
  for (const int rank : {0, 1, 2, 3, 5}) ranks.push_back(come(launch(rank, 6), introduction(launch(rank, 6)), 0.4));
  for (auto& rank : ranks) EXPECT_TRUE(holds(complaint(std::move(rank)), "1 of 6 ranks did not come to"));
}

// The end of a rank in the middle, what all say when they halt and leave, and its end when all have left.
TEST_P(Tree, AllHearOfAnEndAndWhoHasHalted) {
  std::atomic<int> ready = 0, heard = 0;
  auto ranks = all_of(8, false, [&](int self, Muster& muster) {
    auto line = std::make_unique<Lifeline>(self, std::move(muster), Lifeline::Callbacks{[] { return std::string(); }});
    if (self == 7) line->halt();
    await([&] { return self != 0 || line->has_halted(7); });
    await([&] { return self != 6 || line->has_halted(7); });
    ++ready;
    await([&] { return ready == 8; });
    if (self == 1) {
      line.reset();
      return std::string();
    }
    await([&] { return line->failure() != nullptr; });
    ++heard;
    await([&] { return heard == 7; });
    return *line->failure();
  });
  for (int rank = 0; rank < 8; ++rank) {
    const std::string why = ranks[static_cast<std::size_t>(rank)].get();
    EXPECT_EQ(why.rfind(rank == 1 ? "" : "rank 1 (process ", 0), 0u) << why;
  }
}

TEST_P(Tree, AllLeave) {
  auto ranks = all_of(8, false, [](int self, Muster& muster) {
    Lifeline line(self, std::move(muster), Lifeline::Callbacks{[] { return std::string(); }});
    line.leave();
    await([&] { return line.finished(); });
    line.halt();
    line.close();
    return line.failure() == nullptr;
  });
  for (auto& rank : ranks) EXPECT_TRUE(rank.get());
}

TEST_P(Tree, UnlikeCallsFarApartAreCompared) {
  auto ranks = all_of(8, false, [](int self, Muster& muster) {
    Lifeline line(self, std::move(muster), Lifeline::Callbacks{[] { return std::string(); }});
    if (self >= 6) line.tell_waiting({.kind = self == 6 ? CallKind::barrier : CallKind::gather, .sequence = 3});
    await([&] { return line.failure() != nullptr; });
    return *line.failure();
  });
  const std::string first = ranks[0].get();
  EXPECT_TRUE(holds(first, "barrier #3") && holds(first, "gather #3")) << first;
  for (std::size_t rank = 1; rank < 8; ++rank) EXPECT_EQ(ranks[rank].get(), first);
}

// Faults: host D
TEST_P(Tree, ARankInTheMiddleThatIsKilledIsAnErrorAtAllOthers) {
  const TestRanks ranks(5);
  const Problems problems = ranks.in_processes([](Group& group) {
    std::vector<double> data(100);
    group.all_reduce(std::span<const double>(data), std::span(data));
    if (group.rank() == 1) ::raise(SIGKILL);
    group.barrier();
    group.barrier();
  });
  for (std::size_t rank = 0; rank < problems.size(); ++rank)
    EXPECT_TRUE(holds(problems[rank], rank == 1 ? "signal 9" : "rank 1 (process ")) << problems[rank];
}

INSTANTIATE_TEST_SUITE_P(Of, Tree, ::testing::Values("1", "2", "16"));

}  // namespace
}  // namespace waywiser
