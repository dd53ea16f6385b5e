#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/comm/test_ranks.hpp"

namespace waywiser {

inline bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

inline void expect_each(const Problems& problems, std::size_t count, const std::string& part) {
  EXPECT_EQ(problems.size(), count);
  for (const std::string& problem : problems) EXPECT_TRUE(holds(problem, part)) << problem;
}

inline void receive_something(Group& group, int from) {
  std::vector<float> data(1000);
  group.recv(std::span(data), from);
}

}  // namespace waywiser
