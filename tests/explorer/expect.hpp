#pragma once

#include <gtest/gtest.h>

#include <iostream>
#include <string>

#include "tests/explorer/explorer.hpp"

namespace waywiser::explorer {

inline std::uint64_t all_explored = 0;  // schedules

// Explores all schedules of a scenario up to its bounds; prints their number, or the one that has a problem.
inline void expect_no_problem(const std::string& what, const Scenario& scenario, Bounds bounds = {}) {
  const Result result = explore_as_asked(scenario, bounds);
  EXPECT_EQ(result.problem, "") << what << ": again with WAYWISER_SCHEDULE=" << result.schedule;
  all_explored += result.schedules;
  if (!GTEST_FLAG_GET(brief)) std::cout << what << ": explored " << result.schedules << " schedules" << std::endl;
}

}  // namespace waywiser::explorer
