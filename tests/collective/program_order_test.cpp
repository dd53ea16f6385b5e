#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "tests/collective/disorderly_block.hpp"
#include "tests/collective/made_up_call.hpp"
#include "tests/collective/made_up_exchange.hpp"
#include "waywiser/collective/collective_algorithm.hpp"
#include "waywiser/collective/device_schedule/program_body.hpp"
#include "waywiser/collective/device_schedule/program_kernel.hpp"
#include "waywiser/collective/device_schedule/translate.hpp"
#include "waywiser/collective/on_stream/failure.hpp"

namespace waywiser::program {
namespace {

using fused::DisorderlyBlock;

// The ranks of a group on plain memory, their schedules as programs; every block of threads is a thread of its own.
class ProgramRanks {
 public:
  ProgramRanks(std::vector<Schedule> schedules, std::vector<PlainArrays> arrays, const EvaluationTerms& terms)
      : schedules_(std::move(schedules)), arrays_(std::move(arrays)), ranks_(schedules_.size()) {
    std::vector<std::byte*> landings;
    for (const Schedule& schedule : schedules_) {
      Rank& rank = ranks_[plans_.size()];
      plans_.push_back(LandingPlan::of(schedule, terms.type));
      rank.landing.resize(plans_.back().bytes() / sizeof(Vector16) + 8);
      const auto address = reinterpret_cast<std::uintptr_t>(rank.landing.data());
      landings.push_back(reinterpret_cast<std::byte*>((address + 127) / 128 * 128));
    }
    EXPECT_EQ(why_unlike(plans_), std::nullopt);
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) prepare(rank, landings, terms);
  }

  PlainArrays& arrays(std::size_t rank) { return arrays_[rank]; }
  void set_deadline(double seconds) {
    for (Rank& rank : ranks_) rank.terms.deadline_ns = static_cast<std::uint64_t>(seconds * 1e9);
  }
  block::Notice& notice(std::size_t rank) { return ranks_[rank].notice; }

  // False: it has trapped, in some block; the others go with it.
  bool start(std::size_t rank, std::uint64_t seed) {
    const ProgramArguments& terms = ranks_[rank].terms;
    std::atomic<bool> trapped = false;
    {
      std::vector<std::jthread> grid;
      for (unsigned index = 0; index < terms.blocks; ++index)
        grid.emplace_back([&, index] {
          try {
            DisorderlyBlock block(index, terms.blocks, 64, seed * 64 + index);
            ProgramBody<DisorderlyBlock>(block, terms).run();
          } catch (const Trap&) {
            trapped = true;
            on_stream::stop(*terms.notice);
          }
        });
    }
    return !trapped;
  }

  bool start_on_host(std::size_t rank) {
    try {
      run_on_host(ranks_[rank].terms);
      return true;
    } catch (const Trap&) {
      return false;
    }
  }

 private:
  struct Rank {
    std::vector<Vector16> landing;
    Translation translation;
    std::vector<std::uint64_t> offsets;
    ProgramState state;
    block::Notice notice;
    ProgramArguments terms;
  };

  void prepare(std::size_t index, const std::vector<std::byte*>& landings, const EvaluationTerms& evaluation) {
    Rank& rank = ranks_[index];
    const Schedule& schedule = schedules_[index];
    PlainArrays& arrays = arrays_[index];
    rank.offsets.resize(offsets_of(schedule));
    const std::size_t element = bytes_of(evaluation.type);
    Addresses addresses{arrays.bytes.data() + arrays.input_at * element,
                        arrays.bytes.data() + arrays.output_at * element,
                        arrays.bytes.data() + arrays.scratch_at * element,
                        {},
                        landings,
                        rank.offsets.data()};
    for (auto& array : arrays.arrays) addresses.arrays.push_back(array.data());
    rank.translation = translate(schedule, evaluation.type, evaluation.op, addresses, plans_, 132);
    std::ranges::copy(rank.translation.offsets, rank.offsets.begin());
    ProgramArguments& terms = rank.terms;
    terms.instructions = rank.translation.instructions.data();
    terms.rounds = rank.translation.rounds.data();
    terms.round_count = static_cast<std::uint32_t>(rank.translation.rounds.size() - 1);
    terms.rank = static_cast<std::uint32_t>(index);
    terms.blocks = rank.translation.blocks;
    terms.gives_to = rank.translation.gives_to;
    terms.state = &rank.state;
    terms.notice = &rank.notice;
    terms.begun = reinterpret_cast<const std::uint64_t*>(landings[index]);
    for (std::size_t peer = 0; peer < ranks_.size(); ++peer)
      if ((rank.translation.takes_from >> peer & 1) != 0)
        terms.tell[peer] = reinterpret_cast<std::uint64_t*>(landings[peer]) + index;
    terms.signature = block::signature_of(0x77);
    terms.deadline_ns = 60'000'000'000;
  }

  std::vector<Schedule> schedules_;
  std::vector<PlainArrays> arrays_;
  std::vector<LandingPlan> plans_;
  std::vector<Rank> ranks_;
};

// Other values in each start; all of an array that is given.
void fill(const Schedule& schedule, PlainArrays& arrays, int start) {
  arrays.arrays = made_up_arrays(schedule);
  for (std::size_t i = 0; i < arrays.arrays.size(); ++i)
    for (std::byte& byte : arrays.arrays[i])
      if (schedule.arrays[i].use == ArrayUse::given) byte = static_cast<std::byte>(static_cast<int>(byte) + 41 * start);
}

// Only what the caller sees: an executor's own arrays are its own.
bool same(const Schedule& schedule, const PlainArrays& a, const PlainArrays& b) {
  for (std::size_t i = 0; i < schedule.arrays.size(); ++i)
    if (schedule.arrays[i].use <= ArrayUse::taken && a.arrays[i] != b.arrays[i]) return false;
  return true;
}

struct Expected {
  std::vector<std::vector<PlainArrays>> before, after;  // of each start
};

Expected expect(const std::vector<Schedule>& schedules, int starts) {
  Expected expected;
  for (int start = 0; start < starts; ++start) {
    std::vector<PlainArrays> arrays(schedules.size());
    for (std::size_t rank = 0; rank < schedules.size(); ++rank) fill(schedules[rank], arrays[rank], start);
    expected.before.push_back(arrays);
    EXPECT_EQ(evaluate(schedules, arrays, {}).wrong, "");
    expected.after.push_back(std::move(arrays));
  }
  return expected;
}

// Each rank goes from start to start as fast as it can.
void expect_right(const std::vector<Schedule>& schedules, std::uint64_t seed, int starts, bool on_host) {
  const Expected expected = expect(schedules, starts);
  ProgramRanks ranks(schedules, expected.before[0], {});
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
}

TEST(ProgramOrder, ExchangesAreRightWhenStoresArriveLateAndInAnyOrder) {
  for (std::uint64_t seed = 0; seed < 12; ++seed)
    expect_right(MadeUpExchange(2 + static_cast<int>(seed % 3), seed, seed % 3 == 0 ? 90000 : 3000).schedules(), seed,
                 5, false);
}

TEST(ProgramOrder, WhatIsPutIsRightWhenStoresArriveLateAndInAnyOrder) {
  for (std::uint64_t seed = 0; seed < 6; ++seed)
    expect_right(made_up_puts(2 + static_cast<int>(seed % 3), seed % 2 == 0 ? 33 : 30011), seed, 5, false);
}

TEST(ProgramOrder, OneThreadCarriesOutAllBlocks) {
  for (std::uint64_t seed = 20; seed < 40; ++seed)
    expect_right(MadeUpExchange(2 + static_cast<int>(seed % 4), seed, 90000).schedules(), seed, 4, true);
  expect_right(made_up_puts(4, 40), 1, 1000, true);
}

// What is in the table for hosts is what a GPU runs.
TEST(ProgramOrder, EveryAlgorithmIsRightWhenStoresArriveLateAndInAnyOrder) {
  std::uint64_t seed = 1;
  for (const CollectiveAlgorithm& row : algorithms())
    for (const int size : {2, 3, 5}) {
      ++seed;
      EvaluationTerms terms = terms_of(seed * 9, seed);
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

// It comes a while after the others, and then all goes on.
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

// One that has died while others are on their way with it: told to stop by their hosts, they end at once.
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
