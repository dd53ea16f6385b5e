#include "waywiser/collective/device_schedule/direct_messages.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "tests/collective/made_up_exchange.hpp"
#include "tests/collective/program_ranks.hpp"
#include "waywiser/collective/collective_algorithm.hpp"
#include "waywiser/collective/device_schedule/program_body.hpp"
#include "waywiser/collective/on_stream/failure.hpp"

namespace waywiser::program {
namespace {

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
  const auto runs_of = [](std::uint64_t elements) {
    return [=](Schedule& s) {
      s.layouts.push_back({elements, {{{1, 0}, {1, 0}, {200000 / elements, 2 * elements}}}, {}});
      s.steps[1].destination.layout = 1;
    };
  };
  EXPECT_EQ(why_slots(runs_of(2)), "a message from rank 1: its elements lie apart in runs of 16 bytes");
  Schedule in_longer_runs = schedule;
  runs_of(4)(in_longer_runs);
  EXPECT_EQ(direct_messages(in_longer_runs, DataType::uint8, arrays, algorithms).all.size(), 1u);
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

}  // namespace
}  // namespace waywiser::program
