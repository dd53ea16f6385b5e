#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/comm/test_ranks.hpp"
#include "tests/table/made_up_table.hpp"
#include "waywiser/table/shuffle.hpp"

namespace waywiser {
namespace {

using Keys = std::vector<std::int64_t>;

// What all ranks insert in one shuffle, known to all: batches of keys, each for one part.
struct SkewedCase {
  struct Insert {
    int part;
    Keys keys;
  };

  SkewedCase(std::uint32_t seed, int ranks) : inserts(static_cast<std::size_t>(ranks)), chance(seed) {
    options.parts = drawn(1, 4 * ranks);
    options.piece = Bytes{1} << drawn(10, 13);
    options.budget = options.piece * static_cast<Bytes>(drawn(4, 16));
    const int popular = drawn(0, options.parts - 1), share = seed == 0 ? 50 : drawn(0, 100);  // percent of the rows
    const int only = drawn(-1, ranks - 1);  // the rank that has all rows, or -1
    std::int64_t key = 0;
    for (int rank = 0; rank < ranks; ++rank)
      for (int count = only < 0 || only == rank ? drawn(0, 12) : 0; count > 0; --count) {
        const int part = drawn(0, 99) < share ? popular : drawn(0, options.parts - 1);
        Keys keys(static_cast<std::size_t>(drawn(0, 600)));
        for (std::int64_t& each : keys) each = key++;
        inserts[static_cast<std::size_t>(rank)].push_back({part, std::move(keys)});
      }
  }

  Keys wanted(int part) const {
    Keys all;
    for (const auto& of_rank : inserts)
      for (const Insert& each : of_rank)
        if (each.part == part) all.insert(all.end(), each.keys.begin(), each.keys.end());
    return all;
  }

  // The most bytes of rows that a rank gives to others, or gets from them: what no shuffle can do without.
  Bytes bound() const {
    const std::size_t ranks = inserts.size();
    std::vector<Bytes> out(ranks), in(ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank)
      for (const auto& [part, keys] : inserts[rank]) {
        const std::size_t owner = static_cast<std::size_t>(part) % ranks;
        if (owner == rank) continue;
        for (const std::int64_t key : keys) {
          const Bytes row = sizeof key + sizeof(std::int32_t) + KeysAndTexts::text_of(key).size();  // and its offset
          out[rank] += row, in[owner] += row;
        }
      }
    return std::max(std::ranges::max(out), std::ranges::max(in));
  }

  ShuffleOptions options;
  std::vector<std::vector<Insert>> inserts;  // by rank

 private:
  int drawn(int least, int most) { return std::uniform_int_distribution(least, most)(chance); }
  std::mt19937 chance;
};

// The most bytes of pieces that a rank has given to others, or got from them.
Bytes most_bytes(Group& group, const ShuffleCounts& counts) {
  std::int64_t out = 0, in = 0;
  for (std::size_t rank = 0; rank < counts.peers.size(); ++rank) {
    if (static_cast<int>(rank) == group.rank()) continue;
    out += static_cast<std::int64_t>(counts.peers[rank].bytes_out);
    in += static_cast<std::int64_t>(counts.peers[rank].bytes_in);
  }
  std::int64_t most[] = {std::max(out, in)};
  group.all_reduce(std::span<const std::int64_t>(most), std::span(most), ReduceOp::max);
  return static_cast<Bytes>(most[0]);
}

// Returns the bytes of the busiest rank over the bound. 1: nothing has to move.
double run_case(Group& group, const SkewedCase& skewed) {
  const MadeUpSchema schema(KeysAndTexts::columns({}));
  Shuffle shuffle(group, schema.get(), skewed.options);
  for (const auto& each : skewed.inserts[static_cast<std::size_t>(group.rank())])
    shuffle.insert(made_batch(KeysAndTexts::columns(each.keys), static_cast<std::int64_t>(each.keys.size())),
                   each.part);
  shuffle.finish();
  int parts = 0;
  for (; const auto part = shuffle.next(); ++parts) {
    Keys come;
    for (const Batch& each : shuffle.extract(*part))
      std::ranges::copy(KeysAndTexts::keys_of(each), std::back_inserter(come));
    require_that(come == skewed.wanted(*part), "part " + std::to_string(*part) + " has other rows");
  }
  const int ranks = group.size();
  require_that(parts == (skewed.options.parts - group.rank() + ranks - 1) / ranks, "parts are missing");
  require_that(shuffle.counts().most_under_way <= skewed.options.budget + 2 * skewed.options.piece, "the budget");
  const auto bound = static_cast<double>(skewed.bound());
  return bound == 0 ? 1 : static_cast<double>(most_bytes(group, shuffle.counts())) / bound;
}

// The bytes are compared, not the times: a rank gives and gets little more than its rows.
TEST(Shuffle, SkewsComeWholeWithinTheirBudgetsAndNearTheirBounds) {
  EXPECT_EQ(TestRanks(4).in_processes([](Group& group) {
    constexpr std::uint32_t cases = 200;
    std::vector<double> ratios;
    for (std::uint32_t seed = 0; seed < cases; ++seed)
      ratios.push_back(run_case(group, SkewedCase(seed, group.size())));
    std::ranges::sort(ratios);
    require_that(ratios.front() >= 1, "less than the rows was counted");
    require_that(ratios[cases * 95 / 100 - 1] <= 1.25,
                 "95 % of the skews are within " + std::to_string(ratios[cases * 95 / 100 - 1]) + " of their bounds");
  }),
            no_problems);
}

TEST(Shuffle, HalfOfTheRowsWithOneKeyGoInPieces) {
  EXPECT_EQ(TestRanks(2).in_processes([](Group& group) {
    const int keys_of_rows[] = {0};
    const MadeUpSchema schema(KeysAndTexts::columns({}));
    Keys keys(40'000, 1);
    for (std::size_t i = 0; i < keys.size(); i += 2) keys[i] = static_cast<std::int64_t>(i);
    Shuffle shuffle(group, schema.get(), {2, 1 << 16, 1 << 12});
    shuffle.insert(made_batch(KeysAndTexts::columns(keys), 40'000), keys_of_rows);
    const ShuffleCounts::Peer there = shuffle.counts().peers[static_cast<std::size_t>(1 - group.rank())];
    shuffle.finish();
    std::int64_t rows = 0;
    while (const auto part = shuffle.next())
      for (const Batch& each : shuffle.extract(*part)) rows += each.rows();
    std::int64_t told[] = {rows, static_cast<std::int64_t>(there.rows_out)};
    group.all_reduce(std::span<const std::int64_t>(told), std::span(told));
    require_that(told[0] == 80'000, "rows are lost");
    require_that(told[1] > 38'000 && told[1] < 42'000, "each rank gives a half, and keeps a half");
    require_that(there.pieces_out > 20, "few pieces");
    require_that(shuffle.counts().most_under_way <= (1 << 16) + 2 * (1 << 12), "the budget");
  }),
            no_problems);
}

}  // namespace
}  // namespace waywiser
