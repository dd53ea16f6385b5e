#pragma once

#include <functional>
#include <string>

#include "tests/comm/test_ranks.hpp"

namespace waywiser {

// How a rank has ended.
struct RankEnd {
  int exit_code = -1;  // 0; 1: `problem` says why; 70: it ended itself, see `errors`
  int signal = 0;
  std::string problem, errors;  // what a check found; standard error
};

// Two ranks; the second one meets a fault. The first rank is interrupted as soon as the second has stopped. The second
// continues once the first has ended its call, or its process.
class TwoFaultyRanks {
 public:
  explicit TwoFaultyRanks(std::string fault) : fault_(std::move(fault)) {}

  struct Rank {
    Group& group;
    std::function<void()> arm;     // from here on the second one meets its fault
    std::function<void()> settle;  // this rank's memory has a new owner; waits until the other rank's has, too
  };
  using Body = std::function<void(Rank)>;
  void run(const Body& body);
  int virtual_gpus = 0;  // of the machine that both share
  RankEnd first, second;
  bool stopped = false;  // the second one was

 private:
  std::string fault_;
};

}  // namespace waywiser
