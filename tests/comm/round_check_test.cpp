#include "waywiser/comm/round_check.hpp"

#include <gtest/gtest.h>

#include <random>

#include "waywiser/comm/schedule_check.hpp"

namespace waywiser {
namespace {

constexpr std::size_t never = ~std::size_t{0};

// Boxes by chance in planes of 64 elements, of which some begin or end in another plane than they should.
Schedule made_up_copies(std::mt19937& random) {
  const auto below = [&](std::size_t limit) { return static_cast<std::size_t>(random() % limit); };
  Schedule made{"copies", 0, 1, 0, 0, 0, {}, {}, {}};
  made.arrays = {{DataType::uint8, 64 * 8, ArrayUse::taken}, {DataType::uint8, 64 * 8, ArrayUse::taken}};
  const auto block = [&](const BlockLayout& layout) {
    made.layouts.push_back(layout);
    const std::size_t plane = below(4), offset = below(24);
    return Block{Area::array, 64 * plane + offset, layout.runs() * layout.run, static_cast<std::uint32_t>(below(2)),
                 static_cast<std::uint32_t>(made.layouts.size())};
  };
  for (std::size_t copies = 1 + below(3); copies > 0; --copies) {
    BlockLayout layout;
    layout.run = 1 + below(3);
    layout.box = {{{1 + below(4), 64}, {1 + below(3), 12 + 4 * below(2)}, {1 + below(2), 4}}};
    const Block to = block(layout), from = block(layout);
    made.steps.push_back({StepKind::copy, 0, -1, to, from});
  }
  return made;
}

std::vector<BlockAccess> accesses_of(const Schedule& schedule) {
  std::vector<BlockAccess> all;
  for (const Step& step : schedule.steps) {
    all.push_back({&step.destination, true});
    all.push_back({&step.source, false});
  }
  return all;
}

TEST(RoundCheck, WindowsFindWhatRunsFind) {
  std::mt19937 random(22);
  int touching = 0;
  constexpr int cases = 20000;
  for (int i = 0; i < cases; ++i) {
    const Schedule schedule = made_up_copies(random);
    const std::vector<BlockAccess> accesses = accesses_of(schedule);
    const bool by_runs = touch_the_same(schedule, accesses, never);
    ASSERT_EQ(touch_the_same(schedule, accesses, 0), by_runs) << i;
    touching += by_runs;
  }
  EXPECT_GT(touching, cases / 10);
  EXPECT_LT(touching, cases * 9 / 10);
}

// 24 components of a lattice of four dimensions, at both ends of the last one.
// Run by run these are 25 million accesses, in order.
TEST(RoundCheck, FacesOfManyComponentsAreLookedAtOnce) {
  constexpr std::size_t side = 64, row = 4 * (side + 2), plane = row * (side + 2), cube = plane * (side + 2),
                        component = cube * (side + 2), components = 24;
  Schedule schedule{"faces", 0, 1, 0, 0, 0, {}, {}, {}};
  schedule.arrays = {{DataType::uint8, components * component, ArrayUse::taken}};
  schedule.layouts = {{4, {{{side, cube}, {side, plane}, {side, row}}}, {}}};
  const auto face = [](std::size_t number, std::size_t column) {
    return Block{Area::array, number * component + cube + plane + row + 4 * column, 4 * side * side * side, 0, 1};
  };
  for (std::size_t i = 0; i < components; ++i)
    for (const auto& [to, from] : {std::pair(std::size_t{0}, side), std::pair(side + 1, std::size_t{1})})
      schedule.steps.push_back({StepKind::copy, 0, -1, face(i, to), face(i, from)});
  EXPECT_EQ(why_invalid(schedule), std::nullopt);
  schedule.steps.back().destination = face(components - 1, 0);
  EXPECT_EQ(why_invalid(schedule), "steps of round 0 touch the same elements");
  schedule.steps.back().destination = face(components - 1, 2 * side * side * side);
  EXPECT_EQ(why_invalid(schedule), "a block outside of its buffer");
}

}  // namespace
}  // namespace waywiser
