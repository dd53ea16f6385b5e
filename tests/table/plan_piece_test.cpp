#include "waywiser/table/plan_piece.hpp"

#include <gtest/gtest.h>

#include "tests/policy/made_up_rows.hpp"
#include "waywiser/policy/chooser.hpp"

namespace waywiser {
namespace {

constexpr Bytes usual_length = 1 << 20;

// Messages of host memory, and of other kinds that must not count.
Bytes piece_of(std::vector<std::pair<Bytes, Seconds>> short_ones, std::vector<std::pair<Bytes, Seconds>> long_ones) {
  Plan plan;
  plan.rows.push_back(made_up::group_row("message", "host", 2, 0, 1 << 16, "lane"));
  plan.rows.back().expected = std::move(short_ones);
  plan.rows.push_back(made_up::group_row("message", "host", 2, (1 << 16) + 1, 1 << 30, "copies"));
  plan.rows.back().expected = std::move(long_ones);
  plan.rows.push_back(made_up::group_row("all_to_all", "host", 2, 0, 1 << 30, "direct"));
  plan.rows.back().expected = {{1 << 10, 1e-12}};
  const Chooser chooser(std::move(plan));
  return plan_piece(&chooser, usual_length);
}

TEST(PlanPiece, IsTheFirstSizeNearTheBestRate) {
  EXPECT_EQ(piece_of({{1 << 10, 1e-6}}, {{1 << 18, 1e-4}, {1 << 20, 2e-4}, {4 << 20, 4e-4}, {16 << 20, 15e-4}}),
            4u << 20);
  EXPECT_EQ(piece_of({}, {{1 << 18, 1e-4}, {1 << 20, 4.1e-4}}), 1u << 18);
  EXPECT_EQ(piece_of({{1 << 10, 1e-9}}, {{1 << 20, 1e-3}}), usual_length / 4) << "messages alone do not tell how short";
}

TEST(PlanPiece, IsTheUsualOneWithoutMeasurements) {
  EXPECT_EQ(plan_piece(nullptr, usual_length), usual_length);
  EXPECT_EQ(piece_of({}, {}), usual_length);
  EXPECT_EQ(piece_of({}, {{1 << 20, 0}}), usual_length);
}

}  // namespace
}  // namespace waywiser
