#pragma once

#include <string_view>

#include "waywiser/table/shuffle_counts.hpp"

namespace waywiser {

void add_piece(PathCounts& counts, std::string_view way, Bytes bytes);

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
