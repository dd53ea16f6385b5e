#include "waywiser/table/shuffle.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <numeric>

#include "tests/base/error_of.hpp"
#include "tests/comm/test_ranks.hpp"
#include "tests/table/made_up_table.hpp"

namespace waywiser {
namespace {

using Keys = std::vector<std::int64_t>;

const ShuffleOptions small{0, 1 << 14, 1 << 10};
const int first_column[] = {0};

Keys keys_from(std::int64_t first, std::size_t count) {
  Keys keys(count);
  std::iota(keys.begin(), keys.end(), first);
  return keys;
}

Batch batch_of(const Keys& keys) {
  return made_batch(KeysAndTexts::columns(keys), static_cast<std::int64_t>(keys.size()));
}

Keys extracted(Shuffle& shuffle, int part) {
  Keys keys;
  for (const Batch& each : shuffle.extract(part))
    for (const std::int64_t key : KeysAndTexts::keys_of(each)) keys.push_back(key);
  return keys;
}

std::int64_t sum(const Keys& keys) { return std::accumulate(keys.begin(), keys.end(), std::int64_t{0}); }

TEST(Shuffle, EveryRowComesToOneRankWithinTheBudget) {
  for (int size = 1; size <= 8; ++size) {
    TestRanks ranks(size);
    ranks.virtual_gpus = size % 3 == 0 ? size : 0;  // tables of hosts, between ranks that have GPUs too
    EXPECT_EQ(ranks.in_processes([&](Group& group) {
      constexpr std::size_t count = 5000;
      const MadeUpSchema schema(KeysAndTexts::columns({}));
      ShuffleOptions options = small;
      options.parts = 5;
      Shuffle shuffle(group, schema.get(), options);
      for (const std::size_t rows : {count, std::size_t{0}, std::size_t{1}})
        shuffle.insert(batch_of(keys_from(std::int64_t{10000} * group.rank(), rows)), first_column);
      shuffle.finish();
      Keys mine;
      while (const auto part = shuffle.next())
        for (const std::int64_t key : extracted(shuffle, *part)) mine.push_back(key);
      std::int64_t told[] = {static_cast<std::int64_t>(mine.size()), sum(mine)}, wanted = 0;
      group.all_reduce(std::span<const std::int64_t>(told), std::span(told));
      for (int rank = 0; rank < group.size(); ++rank) {
        const std::int64_t first = std::int64_t{10000} * rank;
        wanted += sum(keys_from(first, count)) + first;
      }
      require_that(told[0] == static_cast<std::int64_t>(count + 1) * group.size(), "rows are lost");
      require_that(told[1] == wanted, "other rows have come");
      require_that(shuffle.counts().most_under_way <= options.budget + 2 * options.piece, "the budget");
      require_that(group.size() == 1 || shuffle.counts().peers[0].pieces_out > 5, "one piece");
    }),
              no_problems)
        << size;
  }
}

TEST(Shuffle, PartsKeepTheOrderOfRanksAndFinishOneByOne) {
  EXPECT_EQ(TestRanks(3).in_processes([](Group& group) {
    const MadeUpSchema schema(KeysAndTexts::columns({}));
    ShuffleOptions options = small;
    options.parts = 6;
    Shuffle shuffle(group, schema.get(), options);
    for (int part = 0; part < 6; ++part) {
      shuffle.insert(batch_of(keys_from(std::int64_t{100} * group.rank(), 50)), part);
      shuffle.insert(batch_of({1000 + group.rank()}), part);
      shuffle.complete(part);
      require_that(error_of([&] { shuffle.insert(batch_of({1}), part); }) ==
                       "a shuffle of tables: this rank has completed part " + std::to_string(part),
                   "a completed part is open");
      if (shuffle.owner_of(part) != group.rank()) continue;
      Keys wanted;
      for (int rank = 0; rank < 3; ++rank) {
        for (const std::int64_t key : keys_from(std::int64_t{100} * rank, 50)) wanted.push_back(key);
        wanted.push_back(1000 + rank);
      }
      require_that(extracted(shuffle, part) == wanted, "another order");  // others go on to later parts
    }
    shuffle.finish();
    require_that(!shuffle.next(), "a part is left");
  }),
            no_problems);
}

// The receiver takes no turn before the sender has waited for it.
TEST(Shuffle, ASkewedPartGoesInPieces) {
  EXPECT_EQ(TestRanks(2).in_processes([](Group& group) {
    const MadeUpSchema schema(KeysAndTexts::columns({}));
    Shuffle shuffle(group, schema.get(), {2, 1 << 16, 1 << 14});
    if (group.rank() == 0) shuffle.insert(batch_of(keys_from(0, 100000)), 1);
    shuffle.finish();
    std::size_t rows = 0;
    while (const auto part = shuffle.next()) rows += extracted(shuffle, *part).size();
    require_that(rows == (group.rank() == 1 ? 100000u : 0u), "rows are lost");
    const ShuffleCounts counts = shuffle.counts();
    require_that(counts.most_under_way <= (1 << 16) + 2 * (1 << 14), "the budget");
    if (group.rank() == 0) require_that(counts.peers[1].bytes_out / counts.peers[1].pieces_out <= 1 << 14, "the piece");
  }),
            no_problems);
}

// Few are in a cache still when they are read; a budget of any size leaves it at that.
TEST(Shuffle, FewPiecesAreOnTheirWayToARank) {
  EXPECT_EQ(TestRanks(2).in_processes([](Group& group) {
    constexpr Bytes piece = 1 << 14;
    const MadeUpSchema schema(KeysAndTexts::columns({}));
    Shuffle shuffle(group, schema.get(), {2, 1 << 24, piece});
    if (group.rank() == 0) shuffle.insert(batch_of(keys_from(0, 100000)), 1);
    shuffle.finish();
    while (const auto part = shuffle.next()) shuffle.extract(*part);
    require_that(shuffle.counts().most_under_way <= 5 * piece, "many pieces");
  }),
            no_problems);
}

TEST(Shuffle, EachPathSaysByWhichWayItsPiecesWent) {
  EXPECT_EQ(TestRanks(3).in_processes([](Group& group) {
    const MadeUpSchema schema(KeysAndTexts::columns({}));
    Shuffle shuffle(group, schema.get(), {3, 1 << 20, 1 << 18});
    const int to = (group.rank() + 1) % 3;  // one piece of 64 KiB or more, and one short one; nothing to the third rank
    shuffle.insert(batch_of(keys_from(0, 8192)), to);
    shuffle.insert(batch_of({1}), to);
    shuffle.finish();
    while (const auto part = shuffle.next()) shuffle.extract(*part);
    const ShuffleCounts counts = shuffle.counts();
    const ShuffleCounts::Peer& out = counts.peers[static_cast<std::size_t>(to)];
    require_that(out.path.ways.size() == 2, "two sizes, two ways");
    std::uint64_t pieces = 0, bytes = 0;
    for (const WayCounts& way : out.path.ways) {
      pieces += way.pieces, bytes += way.bytes;
      require_that(way.way == shuffle.way_to(to, way.bytes), "another way than is told beforehand: " + way.way);
    }
    require_that(pieces == 2 && out.pieces_out == 2 && bytes == out.bytes_out, "pieces without a way");
    require_that(out.path.seconds_out > 0 && out.path.seconds_in == 0, "the time out");
    const ShuffleCounts::Peer& in = counts.peers[static_cast<std::size_t>((group.rank() + 2) % 3)];
    require_that(in.path.ways.empty() && in.path.seconds_in > 0 && in.path.seconds_out == 0, "the time in");
    require_that(shuffle.way_to(to, 1) == "lane" && shuffle.way_to(to, 1 << 20) != "lane", "the way of a size");
    require_that(
        error_of([&] { shuffle.way_to(group.rank(), 1); }).find("is not another one of 3") != std::string::npos,
        "a way to itself");
  }),
            no_problems);
}

TEST(BusyTime, CountsWhatOverlapsOnce) {
  BusyTime busy;
  busy.begin(1);
  busy.begin(2);
  EXPECT_EQ(busy.end(4), 0);
  EXPECT_EQ(busy.end(5), 4);
  busy.begin(7);
  EXPECT_EQ(busy.end(8), 1);
}

TEST(Shuffle, WhatRanksDoNotShareIsRefusedAtAll) {
  EXPECT_EQ(TestRanks(2).in_processes([](Group& group) {
    const bool odd = group.rank() == 1;
    const auto said = [&](const std::vector<MadeUpColumn>& columns, ShuffleOptions options) {
      const MadeUpSchema schema(columns);
      return error_of([&] { Shuffle(group, schema.get(), options); });
    };
    const auto require = [](const std::string& found, const std::string& wanted) {
      require_that(found == wanted, found);
    };
    const std::vector<MadeUpColumn> usual{{"a", "l"}, {"b", "u"}};
    using Columns = std::vector<MadeUpColumn>;
    require(said(odd ? Columns{{"a", "l"}, {"b", "g"}} : usual, small),
            "rank 1: column 'b' is float64, at rank 0 string");
    require(said(odd ? Columns{{"a", "l"}, {"c", "u"}} : usual, small), "rank 1: column 1 is 'c', at rank 0 'b'");
    require(said(odd ? Columns{{"a", "l"}} : usual, small), "rank 1: 1 columns, at rank 0 2");
    require(said(odd ? Columns{{"a", "l"}, {"a", "l"}} : usual, small),
            "rank 1: column 'a': there are two of this name");
    require(said(odd ? Columns{{"a", "vu"}} : usual, small),
            "rank 1: column 'a': its type, 'vu' in Arrow, is not served");
    ShuffleOptions other = small;
    other.parts = odd ? 3 : 2;
    require(said(usual, other), "rank 1: this is 'a shuffle into 3 parts', at rank 0 'a shuffle into 2 parts'");
    require(said(usual, {0, odd ? Bytes{2048} : Bytes{4096}, 1024}),
            "rank 1: a shuffle of tables: a budget of 2048 bytes is less than four pieces of 1024");
    group.barrier();
  }),
            no_problems);
}

// `last`: before rank 1 takes its part, which it alone has completed last; else between its inserts.
Problems after_a_death(int size, bool last) {
  return TestRanks(size).in_processes([last](Group& group) {
    const MadeUpSchema schema(KeysAndTexts::columns({}));
    Shuffle shuffle(group, schema.get(), small);
    for (int insert = 0; insert < 10; ++insert) {
      if (group.rank() == 1 && insert == (last ? 9 : 5)) std::raise(SIGKILL);
      shuffle.insert(batch_of(keys_from(0, 1000)), first_column);
    }
    shuffle.finish();
    while (const auto part = shuffle.next()) require_that(extracted(shuffle, *part).empty(), "a part is half there");
  });
}

// The death is the reason that each names, not a wait that was too long.
TEST(Shuffle, ADeadRankIsAnErrorAtAllAndNoPartIsHalfThere) {
  for (const auto& [size, last] : {std::pair{2, false}, {3, false}, {3, true}, {8, true}}) {
    const Problems problems = after_a_death(size, last);
    ASSERT_EQ(problems.size(), static_cast<std::size_t>(size));
    EXPECT_EQ(problems[1], "rank 1: signal 9");
    for (std::size_t rank = 0; rank < problems.size(); ++rank) {
      EXPECT_NE(problems[rank].find("rank 1"), std::string::npos) << problems[rank];
      EXPECT_EQ(problems[rank].find("waited"), std::string::npos) << problems[rank];
      EXPECT_EQ(problems[rank].find("half"), std::string::npos) << problems[rank];
    }
  }
}

TEST(Shuffle, CallsThatCannotBeRight) {
  EXPECT_EQ(TestRanks(2).in_processes([](Group& group) {
    const MadeUpSchema schema(KeysAndTexts::columns({}));
    Shuffle shuffle(group, schema.get(), small);
    const int other = 1 - group.rank();
    const std::string head = "a shuffle of tables: ";
    const auto require = [](const std::string& found, const std::string& wanted) {
      require_that(found == wanted, found);
    };
    require(error_of([&] { shuffle.insert(batch_of({1}), 2); }), head + "part 2 is not in 0 to 1");
    require(error_of([&] { shuffle.insert(batch_of({1}), std::span<const int>()); }), head + "no key is given");
    require(error_of([&] { shuffle.insert(made_batch({}, 0), 0); }), "a table has 0 columns, not 2");
    require(error_of([&] { shuffle.extract(other); }),
            head + "part " + std::to_string(other) + " belongs to another rank");
    require(error_of([&] { shuffle.next(); }), head + "it waits for parts that this rank has not completed");
    shuffle.finish();
    while (const auto part = shuffle.next()) {
      require_that(extracted(shuffle, *part).empty(), "rows from nowhere");
      require(error_of([&] { shuffle.extract(*part); }),
              head + "part " + std::to_string(*part) + " is extracted already");
    }
  }),
            no_problems);
}

}  // namespace
}  // namespace waywiser
