#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "tests/collective/made_up_exchange.hpp"
#include "waywiser/comm/schedule_check.hpp"

namespace waywiser {
namespace {

std::vector<PlainArrays> arrays_for(const std::vector<Schedule>& schedules) {
  std::vector<PlainArrays> all;
  for (const Schedule& schedule : schedules) all.push_back({0, 0, 0, {}, made_up_arrays(schedule)});
  return all;
}

float number(const std::vector<std::byte>& bytes, std::size_t index) {
  float value = 0;
  std::memcpy(&value, bytes.data() + index * sizeof value, sizeof value);
  return value;
}

TEST(ScheduleSteps, WhatIsPutIsThereAfterItsWait) {
  for (const int ranks : {2, 3, 5})
    for (std::uint64_t seed = 1; seed < 30; ++seed) {
      const std::vector<Schedule> schedules = made_up_puts(ranks, 10);
      EXPECT_EQ(why_unlike(schedules), std::nullopt);
      std::vector<PlainArrays> arrays = arrays_for(schedules);
      for (std::size_t rank = 0; rank < arrays.size(); ++rank)
        for (std::size_t i = 0; i < 20; ++i) {
          const float value = static_cast<float>(100 * rank + i);
          std::memcpy(arrays[rank].arrays[0].data() + 4 * i, &value, sizeof value);
        }
      const Evaluation evaluation = evaluate(schedules, arrays, {DataType::uint8, ReduceOp::sum, seed});
      ASSERT_EQ(evaluation.wrong, "");
      for (std::size_t rank = 0; rank < arrays.size(); ++rank)
        for (std::size_t i = 0; i < 10; ++i) {
          const std::size_t previous = (rank + arrays.size() - 1) % arrays.size();
          ASSERT_EQ(number(arrays[rank].arrays[3], 9 - i), static_cast<float>(100 * previous + 2 * i + 1));
        }
    }
}

// By the definition, not by the layouts' own function: an element of a part is where its run and its place in it say.
std::vector<std::byte> elements_of(const ArrayPart& part, const std::vector<std::byte>& array) {
  std::vector<std::byte> all;
  const std::size_t size = bytes_of(part.type);
  for (std::size_t i = 0; i < part.count; ++i) {
    std::size_t at = part.offset + i;
    if (part.apart) {
      std::size_t run = i / part.layout.run;
      at = part.offset + i % part.layout.run;
      if (!part.layout.indices.empty()) {
        at += part.layout.indices[run];
      } else {
        for (std::size_t dimension = 3; dimension-- > 0; run /= part.layout.box[dimension].count)
          at += run % part.layout.box[dimension].count * part.layout.box[dimension].stride;
      }
    }
    all.insert(all.end(), array.begin() + static_cast<std::ptrdiff_t>(at * size),
               array.begin() + static_cast<std::ptrdiff_t>((at + 1) * size));
  }
  return all;
}

TEST(ScheduleSteps, AnExchangeOfRowsAndListsOfAllTypesTakesWhatIsGiven) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const int ranks = 1 + static_cast<int>(seed % 5);
    const MadeUpExchange made_up(ranks, seed, 400);
    const std::vector<Schedule> schedules = made_up.schedules();
    EXPECT_EQ(why_unlike(schedules), std::nullopt);
    std::vector<PlainArrays> arrays = arrays_for(schedules);
    ASSERT_EQ(evaluate(schedules, arrays, {DataType::uint8, ReduceOp::sum, seed}).wrong, "");
    for (std::size_t taker = 0; taker < made_up.of.size(); ++taker)
      for (std::size_t i = 0; i < made_up.of[taker].size(); ++i) {
        const ArrayExchange& take = made_up.of[taker][i];
        if (take.take.count == 0) continue;
        const auto& from = made_up.of[static_cast<std::size_t>(take.peer)];
        // No two have one tag, but for those that give nothing.
        const auto give = std::ranges::find_if(from, [&](const ArrayExchange& each) {
          return each.peer == static_cast<int>(taker) && each.give_tag == take.take_tag && each.give.count != 0;
        });
        ASSERT_NE(give, from.end());
        const auto given = static_cast<std::size_t>(give - from.begin());
        ASSERT_EQ(elements_of(take.take, arrays[taker].arrays[2 * i + 1]),
                  elements_of(give->give, arrays[static_cast<std::size_t>(take.peer)].arrays[2 * given]))
            << "seed " << seed;
      }
  }
}

std::string why(const std::function<void(Schedule&)>& change) {
  Schedule schedule = made_up_puts(3, 4)[0];
  change(schedule);
  return why_invalid(schedule).value_or("valid");
}

TEST(ScheduleSteps, TheCheckerNamesWhatAScheduleMustNotDo) {
  using Change = std::function<void(Schedule&)>;
  const std::pair<std::string, Change> changes[] = {
      {"valid", [](Schedule&) {}},
      {"rounds do not ascend", [](Schedule& s) { s.steps[3].round = 9; }},
      {"a put to rank 1 without a signal", [](Schedule& s) { s.steps.erase(s.steps.begin() + 4); }},
      {"a put to rank 1 in the round of its signal", [](Schedule& s) { s.steps[4].round = 1; }},
      {"two puts to rank 1 without a signal between them",
       [](Schedule& s) { s.steps.insert(s.steps.begin() + 3, s.steps[3]); }},
      {"a peer that does not exist", [](Schedule& s) { s.steps[3].peer = 3; }},
      {"a peer that does not exist", [](Schedule& s) { s.steps[3].peer = 0; }},
      {"a block outside of its buffer", [](Schedule& s) { s.arrays[0].count = 7; }},
      {"a block outside of its buffer", [](Schedule& s) { s.layouts[1].indices[2] = 5; }},
      {"a block outside of its buffer", [](Schedule& s) { s.steps[3].source.offset = ~std::size_t{0}; }},
      {"a layout of no elements, or of more than there can be",
       [](Schedule& s) { s.layouts[0].box[1] = {std::size_t{1} << 40, std::size_t{1} << 40}; }},
      {"a block of 4 elements whose layout has 3", [](Schedule& s) { s.layouts[1].indices.pop_back(); }},
      {"a block of array 4, of 4", [](Schedule& s) { s.steps[3].source.array = 4; }},
      {"a block of layout 3, of 2", [](Schedule& s) { s.steps[0].source.layout = 3; }},
      {"it writes its input", [](Schedule& s) { s.arrays[1].use = ArrayUse::given; }},
      {"a wait whose destination is no block of a landing array",
       [](Schedule& s) { s.arrays[2].use = ArrayUse::scratch; }},
      {"it copies between arrays of two types", [](Schedule& s) { s.arrays[0].type = DataType::int32; }},
      {"it copies between blocks of different size", [](Schedule& s) { s.steps[0].destination.count = 3; }},
      {"it packs into elements that lie apart",
       [](Schedule& s) { s.steps[0].destination = {Area::array, 0, 4, 3, 2}; }},
      {"steps of round 0 touch the same elements", [](Schedule& s) { s.steps.insert(s.steps.begin(), s.steps[0]); }},
      {"steps of round 4 touch the same elements", [](Schedule& s) { s.layouts[1].indices[2] = 3; }},
      {"a step without elements", [](Schedule& s) { s.steps[3].source.count = 0; }},
      {"a source in a step that has none", [](Schedule& s) { s.steps[4].source = s.steps[3].source; }},
      {"it is for a rank that does not exist", [](Schedule& s) { s.rank = 3; }},
  };
  for (const auto& [text, change] : changes) EXPECT_EQ(why(change), text);
}

TEST(ScheduleSteps, TheCheckerOfAllRanksNamesTwoThatDoNotFit) {
  std::vector<Schedule> schedules = made_up_puts(3, 4);
  EXPECT_EQ(why_unlike(schedules), std::nullopt);
  schedules[1].steps[5].destination.count = 3;
  EXPECT_EQ(why_unlike(schedules), "rank 0 sends 1 messages to rank 1, which takes 1 messages of other sizes");
  schedules[1].steps.erase(schedules[1].steps.begin() + 5, schedules[1].steps.end());
  EXPECT_EQ(why_unlike(schedules), "rank 0 sends 1 messages to rank 1, which takes 0 messages");
}

}  // namespace
}  // namespace waywiser
