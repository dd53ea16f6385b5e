#pragma once

#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "tests/comm/test_ranks.hpp"

namespace waywiser {

// The errors of two ranks, each in its own process with a Runner of its options.
template <typename Runner>
Problems run_in_two(const std::function<void(Runner&)>& body) {
  const TestRanks ranks(2);
  std::vector<TestRanks::Process> processes;
  for (int rank = 0; rank < 2; ++rank)
    processes.push_back(ranks.start(rank, [&](int self) {
      Runner runner(ranks.options(self));
      body(runner);
    }));
  Problems problems;
  for (const TestRanks::Process& process : processes)
    if (const std::string problem = TestRanks::wait(process); !problem.empty()) problems.push_back(problem);
  return problems;
}

inline std::vector<float> made_by(int rank, std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), static_cast<float>(1000 * rank));
  return values;
}

}  // namespace waywiser
