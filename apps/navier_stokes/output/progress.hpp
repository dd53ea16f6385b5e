#pragma once

#include <cstdint>
#include <string>

namespace flow {

// A line on standard error with the share that is done and the time left, from one rank. On a terminal it is drawn anew
// up to ten times a second, else printed at every tenth.
class Progress {
 public:
  // `first` of `steps` were done before this run.
  Progress(bool shown, std::int64_t first, std::int64_t steps);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `steps`: how many there will be, about.
  void at(std::int64_t step, std::int64_t steps);

 private:
  const bool shown_, terminal_;
  const std::int64_t first_;
  const double begun_;
  double drawn_ = 0;
  std::int64_t tenth_ = 0;
};

// "[#####.....]  50 %, step 5 of 10, 3 s left"; `rate`: steps a second.
std::string progress_line(std::int64_t step, std::int64_t steps, double rate);

}  // namespace flow
