#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "waywiser/base/units.hpp"

namespace waywiser {

// Pieces that have gone to one rank by one way.
struct WayCounts {
  std::string way;  // see message_way()
  std::uint64_t pieces = 0, bytes = 0;
};

// Pieces with bytes between this rank and another one. The seconds are those in which at least one was under way, as
// this rank has noticed in its turns.
struct PathCounts {
  Seconds seconds_out = 0, seconds_in = 0;
  std::vector<WayCounts> ways;

  void add(std::string_view way, Bytes bytes);
};

// Adds up the time in which at least one of several things is under way.
class BusyTime {
 public:
  void begin(Seconds now) noexcept {
    if (open_++ == 0) since_ = now;
  }
  // How much is added: 0 while others are under way.
  Seconds end(Seconds now) noexcept { return --open_ == 0 ? now - since_ : 0; }

 private:
  int open_ = 0;
  Seconds since_ = 0;
};

}  // namespace waywiser
