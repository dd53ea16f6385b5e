#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <thread>

#include "tests/collective/disorderly_block.hpp"
#include "tests/collective/made_up_call.hpp"
#include "tests/collective/made_up_exchange.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/collective/collective_algorithm.hpp"
#include "waywiser/collective/device_schedule/direct_messages.hpp"
#include "waywiser/collective/device_schedule/program_body.hpp"
#include "waywiser/collective/device_schedule/program_kernel.hpp"
#include "waywiser/collective/device_schedule/translate.hpp"
#include "waywiser/collective/on_stream/failure.hpp"

namespace waywiser::program {
namespace {

using fused::DisorderlyBlock;

enum class Messages { in_slots, direct };

// The ranks of a group on plain memory, with their schedules as programs; every block is one thread.
class ProgramRanks {
 public:
  ProgramRanks(std::vector<Schedule> schedules, std::vector<PlainArrays> arrays, const EvaluationTerms& terms,
               Messages messages = Messages::in_slots, std::string_view algorithm = "")
      : schedules_(std::move(schedules)), arrays_(std::move(arrays)), ranks_(schedules_.size()) {
    if (!algorithm.empty()) algorithms_.set(program_algorithm(parse_way(algorithm)));
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) ranks_[rank].direct.resize(schedules_[rank].steps.size());
    for (std::size_t rank = 0; messages == Messages::direct && rank < ranks_.size(); ++rank) make_direct(rank, terms);
    std::vector<std::byte*> landings;
    for (const Schedule& schedule : schedules_) {
      Rank& rank = ranks_[plans_.size()];
      std::vector<bool> is_direct;
      for (const View& view : rank.direct) is_direct.push_back(view.data != nullptr);
      rank.messages = MessagePlans::of(schedule, terms.type, is_direct, algorithms_);
      plans_.push_back(LandingPlan::of(schedule, terms.type, rank.messages));
      rank.landing.resize(plans_.back().bytes() / sizeof(Vector16) + 8);
      const auto address = reinterpret_cast<std::uintptr_t>(rank.landing.data());
      landings.push_back(reinterpret_cast<std::byte*>((address + 127) / 128 * 128));
    }
    EXPECT_EQ(why_unlike(plans_), std::nullopt);
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) prepare(rank, landings, terms);
  }

  PlainArrays& arrays(std::size_t rank) { return arrays_[rank]; }
  const LandingPlan& plan(std::size_t rank) const { return plans_[rank]; }
  std::size_t direct_messages() const { return direct_messages_; }
  void set_deadline(double seconds) {
    for (Rank& rank : ranks_) rank.terms.deadline_ns = static_cast<std::uint64_t>(seconds * 1e9);
  }
  Form form(std::size_t rank) const { return ranks_[rank].terms.form; }
  block::Notice& notice(std::size_t rank) { return ranks_[rank].notice; }

  // False: a block has trapped, and the others have ended with it.
  bool start(std::size_t rank, std::uint64_t seed) {
    const ProgramArguments& terms = ranks_[rank].terms;
    std::atomic<bool> trapped = false;
    {
      std::vector<std::jthread> grid;
      for (unsigned index = 0; index < terms.blocks; ++index)
        grid.emplace_back([&, index] {
          try {
            DisorderlyBlock block(index, terms.blocks, 64, seed * 64 + index);
            with_form(terms.form, [&]<typename Form>() { ProgramBody<DisorderlyBlock, Form>(block, terms).run(); });
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
    MessagePlans messages;
    std::vector<Vector16> landing;
    Translation translation;
    std::vector<std::uint64_t> offsets;
    ProgramState state;
    block::Notice notice;
    ProgramArguments terms;
    std::vector<View> direct;
  };

  // All messages that the rank can receive directly.
  void make_direct(std::size_t receiver, const EvaluationTerms& terms) {
    std::vector<Region> regions;
    for (auto& array : arrays_[receiver].arrays) regions.push_back({array.data(), array.size(), host(0)});
    for (const DirectMessage& each :
         program::direct_messages(schedules_[receiver], terms.type, regions, algorithms_).all) {
      const auto step = storing_step(schedules_[each.sender], static_cast<int>(receiver), each.message);
      if (!step) throw Error(ErrorKind::invalid_input, "a message that nobody sends");
      View view = each.view;
      view.data = arrays_[receiver].arrays[each.array].data() + each.offset;
      ranks_[each.sender].direct[*step] = ranks_[receiver].direct[each.step] = view;
      ++direct_messages_;
    }
  }

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
                        rank.offsets.data(),
                        rank.direct};
    for (auto& array : arrays.arrays) addresses.arrays.push_back(array.data());
    rank.translation = translate(schedule, evaluation.type, evaluation.op, addresses, rank.messages, plans_, 132);
    std::ranges::copy(rank.translation.offsets, rank.offsets.begin());
    ProgramArguments& terms = rank.terms;
    terms.instructions = rank.translation.instructions.data();
    terms.rounds = rank.translation.rounds.data();
    terms.round_count = static_cast<std::uint32_t>(rank.translation.rounds.size() - 1);
    terms.rank = static_cast<std::uint32_t>(index);
    terms.blocks = rank.translation.blocks;
    terms.form = rank.translation.form;
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
  ProgramAlgorithms algorithms_{nullptr};
  std::vector<LandingPlan> plans_;
  std::vector<Rank> ranks_;
  std::size_t direct_messages_ = 0;
};

// Other values in each start; all of an array that is given.
void fill(const Schedule& schedule, PlainArrays& arrays, int start) {
  arrays.arrays = made_up_arrays(schedule);
  for (std::size_t i = 0; i < arrays.arrays.size(); ++i)
    for (std::byte& byte : arrays.arrays[i])
      if (schedule.arrays[i].use == ArrayUse::given) byte = static_cast<std::byte>(static_cast<int>(byte) + 41 * start);
}

// Compares the caller's arrays only, not those of the executor.
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

// Each rank gives `count` float64 to the other and takes as many.
std::vector<Schedule> swaps(std::size_t count) {
  std::vector<Schedule> all;
  for (int rank = 0; rank < 2; ++rank)
    all.push_back({"swap",
                   rank,
                   2,
                   0,
                   0,
                   0,
                   {{StepKind::send, 0, 1 - rank, {}, {Area::array, 0, count, 0, 0}},
                    {StepKind::receive, 0, 1 - rank, {Area::array, 0, count, 1, 0}, {}}},
                   {{DataType::float64, count, ArrayUse::given}, {DataType::float64, count, ArrayUse::taken}},
                   {}});
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

TEST(ProgramOrder, DirectMessagesNeedNoSlots) {
  constexpr std::size_t count = 200000;
  const std::vector<Schedule> schedules = swaps(count);
  const Expected expected = expect(schedules, 1);
  const ProgramRanks in_slots(schedules, expected.before[0], {}),
      direct(schedules, expected.before[0], {}, Messages::direct);
  EXPECT_EQ(direct.direct_messages(), 2u);
  EXPECT_GT(in_slots.plan(0).bytes(), 2 * count * sizeof(double));
  EXPECT_LT(direct.plan(0).bytes(), 4096u);
  EXPECT_EQ(direct.plan(0).longest, 0u);
}

// The sender's deadline passes while the receiver has begun nothing: its program may still use the array.
TEST(ProgramOrder, ADirectMessageIsNotStoredBeforeItsReceiverHasBegun) {
  const std::vector<Schedule> schedules = swaps(200000);
  ProgramRanks ranks(schedules, expect(schedules, 1).before[0], {}, Messages::direct);
  ranks.set_deadline(1e-3);
  const auto before = ranks.arrays(1).arrays;
  EXPECT_FALSE(ranks.start(0, 3));
  EXPECT_EQ(ranks.arrays(1).arrays, before);
  const auto failure = on_stream::failure_in(ranks.notice(0));
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->peer, 1);
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

TEST(DirectMessages, AreLongOnesIntoArraysThatNoEarlierRoundUses) {
  Schedule schedule = swaps(200000)[0];
  std::vector<std::byte> memory(3200000);
  const Region all{memory.data(), memory.size(), host(0)};
  std::vector<Region> arrays{all.slice(0, 1600000), all.slice(1600000, 1600000)};
  ProgramAlgorithms algorithms(nullptr);
  const auto found = direct_messages(schedule, DataType::uint8, arrays, algorithms);
  ASSERT_EQ(found.all.size(), 1u);
  EXPECT_EQ(found.why_slots, "");
  EXPECT_EQ(found.all[0].step, 1u);
  EXPECT_EQ(found.all[0].bytes, 1600000u);
  const auto why_slots = [&](const auto& change) {
    Schedule changed = schedule;
    change(changed);
    const auto messages = direct_messages(changed, DataType::uint8, arrays, algorithms);
    EXPECT_TRUE(messages.all.empty());
    return messages.why_slots;
  };
  EXPECT_EQ(why_slots([](Schedule& s) { s.steps[0].source.count = s.steps[1].destination.count = 8192; }), "");
  EXPECT_EQ(why_slots([](Schedule& s) { s.steps[1].kind = StepKind::receive_reduce; }),
            "a message from rank 1: it is reduced with an array");
  EXPECT_EQ(why_slots([](Schedule& s) {
              s.layouts.push_back({100000, {}, {100000, 0}});
              s.steps[1].destination.layout = 1;
            }),
            "a message from rank 1: its elements are in a list");
  EXPECT_EQ(why_slots([](Schedule& s) {
              s.layouts.push_back({4, {{{1, 0}, {1, 0}, {50000, 8}}}, {}});
              s.steps[1].destination.layout = 1;
            }),
            "a message from rank 1: its elements lie apart in runs of 32 bytes");
  algorithms.set(program_algorithm(parse_way("bulk(blocks=7)")));
  EXPECT_EQ(why_slots([](Schedule&) {}), "a message from rank 1: bulk(blocks=7) is chosen for 1600000 bytes");
  algorithms.set({});
  arrays[0] = arrays[1];
  EXPECT_EQ(why_slots([](Schedule& s) { s.steps[1].round = 1; }),
            "a message from rank 1: an earlier round uses its array");
}

TEST(DirectMessages, AreNamedByTheirNumberBetweenTwoRanks) {
  const std::vector<Schedule> puts = made_up_puts(3, 30011);
  EXPECT_EQ(storing_step(puts[0], 1, 0), 3u);            // the put, which step 4 signals
  EXPECT_EQ(storing_step(puts[0], 1, 1), std::nullopt);  // there is no other message
  EXPECT_EQ(storing_step(puts[0], 2, 0), std::nullopt);  // a signal without data
  EXPECT_EQ(storing_step(swaps(10)[1], 0, 0), 0u);
}

TEST(DirectMessages, HaveAnExtent) {
  View view;
  view.run = 100;
  EXPECT_EQ(extent_of(view, 100), 100u);
  view.strides[2] = 300;
  view.counts[1] = 4;
  EXPECT_EQ(extent_of(view, 400), 1000u);
  view.strides[1] = 5000;
  view.counts[0] = 2;
  EXPECT_EQ(extent_of(view, 800), 6000u);
  EXPECT_EQ(extent_of(view, 700), std::nullopt);  // not whole boxes
  view.strides[0] = std::uint64_t{1} << 62;
  EXPECT_EQ(extent_of(view, 1600), std::nullopt);
  view.run = 0;
  EXPECT_EQ(extent_of(view, 800), std::nullopt);
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
