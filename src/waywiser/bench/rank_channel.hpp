#pragma once

#include <string>

#include "waywiser/bench/bench_rank.hpp"
#include "waywiser/device/descriptor.hpp"

namespace waywiser {

// The rank's end of the Unix socket of the program that conducts the benchmark: lines of text.
//   hello RANK SIZE BACKEND   what the rank says first
//   run REQUEST               answered by: times SECONDS...   or   unavailable WHY   or   failed WHY, which is the end
//   quit
class RankChannel {
 public:
  // Throws io.
  explicit RankChannel(const std::string& path);

  // Serves until it is told to quit, or the other side has gone.
  void serve(BenchRank& rank);

 private:
  bool read_line(std::string& line);
  void write_line(std::string line);

  Descriptor socket_;
  std::string received_;
};

}  // namespace waywiser
