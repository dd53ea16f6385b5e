#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <thread>

#include "tests/collective/made_up_call.hpp"
#include "tests/collective/made_up_exchange.hpp"
#include "tests/collective/program_ranks.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/collective/collective_algorithm.hpp"
#include "waywiser/collective/device_schedule/direct_messages.hpp"
#include "waywiser/collective/device_schedule/program_body.hpp"
#include "waywiser/collective/on_stream/failure.hpp"

namespace waywiser::program {
namespace {

// Each rank goes from start to start as fast as it can. Returns the number of direct messages.
std::size_t expect_right(const std::vector<Schedule>& schedules, std::uint64_t seed, int starts, bool on_host,
                         Messages messages, const char* algorithm = "", std::optional<Form> form = {}) {
  const Expected expected = expect(schedules, starts);
  ProgramRanks ranks(schedules, expected.before[0], {}, messages, algorithm);
  for (std::size_t rank = 0; form && rank < schedules.size(); ++rank)
    EXPECT_EQ(ranks.form(rank), *form) << algorithm << " of " << schedules[rank].algorithm;
  std::vector<int> wrong(schedules.size());
  {
    std::vector<std::jthread> all;
    for (std::size_t rank = 0; rank < schedules.size(); ++rank)
      all.emplace_back([&, rank] {
        for (int start = 0; start < starts; ++start) {
          const auto& before = expected.before[static_cast<std::size_t>(start)][rank].arrays;
          for (std::size_t i = 0; i < before.size(); ++i)
            std::ranges::copy(before[i], ranks.arrays(rank).arrays[i].begin());
          const bool ran = on_host ? ranks.start_on_host(rank)
                                   : ranks.start(rank, (seed * 100 + static_cast<std::uint64_t>(start)) * 8 + rank);
          if (!ran || !same(schedules[rank], ranks.arrays(rank), expected.after[static_cast<std::size_t>(start)][rank]))
            ++wrong[rank];
        }
      });
  }
  EXPECT_EQ(wrong, std::vector<int>(schedules.size())) << "seed " << seed;
  for (std::size_t rank = 0; rank < schedules.size(); ++rank) EXPECT_FALSE(on_stream::failure_in(ranks.notice(rank)));
  return ranks.direct_messages();
}

TEST(ProgramOrder, ExchangesAreRightWhenStoresArriveLateAndInAnyOrder) {
  std::size_t direct = 0;
  for (const Messages messages : {Messages::in_slots, Messages::direct})
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      const std::size_t most = messages == Messages::direct || seed % 3 == 0 ? 90000 : 3000;
      const MadeUpExchange exchange(2 + static_cast<int>(seed % 3), seed, most);
      direct +=
          expect_right(exchange.schedules(), seed, 5, false, messages, messages == Messages::direct ? "direct" : "");
    }
  EXPECT_GT(direct, 3u);
}

TEST(ProgramOrder, WhatIsPutIsRightWhenStoresArriveLateAndInAnyOrder) {
  for (const Messages messages : {Messages::in_slots, Messages::direct})
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      const int ranks = 2 + static_cast<int>(seed % 3);
      const bool is_long = seed % 2 != 0;
      const auto direct = expect_right(made_up_puts(ranks, is_long ? 30011 : 33), seed, 5, false, messages);
      EXPECT_EQ(direct, is_long && messages == Messages::direct ? static_cast<std::size_t>(ranks) : 0u);
    }
}

TEST(ProgramOrder, OneThreadCarriesOutAllBlocks) {
  std::size_t direct = 0;
  for (std::uint64_t seed = 20; seed < 40; ++seed)
    direct += expect_right(MadeUpExchange(2 + static_cast<int>(seed % 4), seed, 90000).schedules(), seed, 4, true,
                           seed % 2 == 0 ? Messages::in_slots : Messages::direct, seed % 2 == 0 ? "" : "direct");
  EXPECT_GT(direct, 5u);
  expect_right(made_up_puts(4, 40), 1, 1000, true, Messages::in_slots);
}

TEST(ProgramOrder, EveryAlgorithmOfMessagesIsRightWhenStoresArriveLateAndInAnyOrder) {
  std::uint64_t seed = 50;
  for (const char* algorithm : {"LL(piece=256)", "LL(piece=1G,blocks=1)", "LL128", "LL128(piece=256)",
                                "LL128(piece=1G,blocks=1)", "LL128(piece=480,blocks=7)", "bulk(piece=256,blocks=64)",
                                "bulk(blocks=2)", "direct(piece=512,blocks=5)", "direct(piece=1M)"}) {
    const bool is_direct = std::string_view(algorithm).starts_with("direct");
    const MadeUpExchange exchange(3, ++seed, 20000);
    const auto direct = expect_right(exchange.schedules(), seed, 4, seed % 2 == 0, Messages::direct, algorithm) +
                        expect_right(made_up_puts(2, 3011), seed, 4, seed % 2 != 0, Messages::direct, algorithm);
    EXPECT_EQ(direct != 0, is_direct) << algorithm;
  }
}

// Each rank gives a face of a box of `type` to the other and takes one: `run` elements in a row, with a gap behind
// each.
std::vector<Schedule> faces(DataType type, std::size_t run, std::size_t rows) {
  std::vector<Schedule> all;
  const std::size_t count = run * rows, extent = rows * (run + 8);
  for (int rank = 0; rank < 2; ++rank)
    all.push_back({"face",
                   rank,
                   2,
                   0,
                   0,
                   0,
                   {{StepKind::send, 0, 1 - rank, {}, {Area::array, 0, count, 0, 1}},
                    {StepKind::receive, 0, 1 - rank, {Area::array, 0, count, 1, 1}, {}}},
                   {{type, extent, ArrayUse::given}, {type, extent, ArrayUse::taken}},
                   {{run, {{{1, 0}, {1, 0}, {rows, run + 8}}}, {}}}});
  return all;
}

// A kernel of its own for each.
TEST(ProgramOrder, ProgramsOfEveryFormAreRightWhenStoresArriveLateAndInAnyOrder) {
  struct Case {
    Form form;
    const char* algorithm;
    std::vector<Schedule> schedules;
  };
  const std::vector<Case> cases{{Form::packets, "LL", swaps(3)},
                                {Form::packets, "LL(piece=256)", swaps(5001)},
                                {Form::lines, "LL128", swaps(1)},
                                {Form::lines, "LL128", swaps(20011)},
                                {Form::lines, "LL128(piece=480,blocks=3)", swaps(5001)},
                                {Form::lines_of_rows_16, "LL128", faces(DataType::float64, 16, 200)},
                                {Form::lines_of_rows_8, "LL128", faces(DataType::float64, 1, 5003)},
                                {Form::lines_of_rows_4, "LL128", faces(DataType::float32, 3, 2999)},
                                {Form::any, "LL128", faces(DataType::float16, 1, 3001)},
                                {Form::stores, "direct", swaps(20011)},
                                {Form::stores, "direct(piece=256,blocks=5)", swaps(3)},
                                {Form::stores_of_rows, "direct", faces(DataType::float64, 16, 300)},
                                {Form::any, "direct", faces(DataType::float64, 9, 300)},
                                {Form::any, "bulk", swaps(20011)}};
  std::uint64_t seed = 300;
  for (const Case& each : cases)
    for (const bool on_host : {false, true}) {
      const Messages messages = each.algorithm[0] == 'd' ? Messages::direct : Messages::in_slots;
      expect_right(each.schedules, ++seed, 5, on_host, messages, each.algorithm, each.form);
    }
}

TEST(ProgramOrder, RanksWithOtherAlgorithmsAreTold) {
  const std::vector<Schedule> schedules = swaps(100);
  std::vector<LandingPlan> plans;
  for (const char* algorithm : {"LL", "LL(piece=256)"}) {
    ProgramAlgorithms algorithms(nullptr);
    algorithms.set(program_algorithm(parse_way(algorithm)));
    const Schedule& schedule = schedules[plans.size()];
    plans.push_back(
        LandingPlan::of(schedule, DataType::uint8, MessagePlans::of(schedule, DataType::uint8, {}, algorithms)));
  }
  EXPECT_EQ(why_unlike(plans), "rank 0 sends messages to rank 1 by other algorithms than it takes them by");
}

// A GPU runs the same schedules as the hosts.
TEST(ProgramOrder, EveryAlgorithmIsRightWhenStoresArriveLateAndInAnyOrder) {
  std::uint64_t seed = 1;
  for (const CollectiveAlgorithm& row : algorithms())
    for (const int size : {2, 3, 5}) {
      ++seed;
      EvaluationTerms terms = terms_of(seed * 9, seed, arithmetic_ops);
      if (terms.op == ReduceOp::avg || !fused::fits_into_packets(terms.type, terms.op)) terms.op = ReduceOp::sum;
      const MadeUpCall made_up(row.operation, size, terms, seed % 2 == 0);
      if (row.make == nullptr || row.why_unavailable(made_up.of(0))) continue;
      std::vector<Schedule> schedules;
      std::vector<PlainArrays> arrays;
      for (int rank = 0; rank < size; ++rank) {
        schedules.push_back(row.make(made_up.of(rank)));
        arrays.push_back(made_up.arrays(schedules.back()));
      }
      ProgramRanks ranks(schedules, arrays, terms);
      {
        std::vector<std::jthread> all;
        for (std::size_t rank = 0; rank < schedules.size(); ++rank)
          all.emplace_back([&, rank] { EXPECT_TRUE(ranks.start(rank, seed * 8 + rank)); });
      }
      for (std::size_t rank = 0; rank < schedules.size(); ++rank) arrays[rank] = ranks.arrays(rank);
      EXPECT_EQ(made_up.wrong(schedules, arrays), "")
          << name(row.operation) << " " << row.name << ", " << size << " ranks";
    }
}

TEST(ProgramOrder, ARankThatIsMissingIsNamedAtTheDeadlineAndNothingIsTaken) {
  const std::vector<Schedule> schedules = made_up_puts(2, 30011);
  ProgramRanks ranks(schedules, expect(schedules, 1).before[0], {});
  ranks.set_deadline(1e-3);
  const auto before = ranks.arrays(0).arrays;
  EXPECT_FALSE(ranks.start(0, 3));
  EXPECT_EQ(ranks.arrays(0).arrays[3], before[3]);
  const auto failure = on_stream::failure_in(ranks.notice(0));
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->peer, 1);
  EXPECT_EQ(failure->reason, block::Reason::late);
  EXPECT_EQ(failure->number, 1);
}

// The rank starts after the others; then all ranks complete.
TEST(ProgramOrder, ARankThatIsLateIsWaitedFor) {
  const std::vector<Schedule> schedules = made_up_puts(3, 100);
  const Expected expected = expect(schedules, 1);
  ProgramRanks ranks(schedules, expected.before[0], {});
  std::atomic<int> waiting = 0;
  std::vector<std::jthread> all;
  for (std::size_t rank = 0; rank < 3; ++rank)
    all.emplace_back([&, rank] {
      if (rank == 2)
        while (waiting != 2) std::this_thread::yield();
      else
        ++waiting;
      EXPECT_TRUE(ranks.start(rank, rank));
      EXPECT_TRUE(same(schedules[rank], ranks.arrays(rank), expected.after[0][rank]));
    });
}

// A rank has died during a start. If the other ranks' hosts stop their kernels, these end at once.
TEST(ProgramOrder, WhoIsToldToStopStops) {
  const std::vector<Schedule> schedules = made_up_puts(2, 100);
  ProgramRanks ranks(schedules, expect(schedules, 1).before[0], {});
  on_stream::stop(ranks.notice(0));
  EXPECT_FALSE(ranks.start(0, 3));
  const auto failure = on_stream::failure_in(ranks.notice(0));
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->reason, block::Reason::stopped);
}

}  // namespace
}  // namespace waywiser::program
