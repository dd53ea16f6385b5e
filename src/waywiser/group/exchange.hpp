#pragma once

#include "waywiser/comm/elements.hpp"

namespace waywiser {

// What one rank gives to another in a neighbor_exchange, and what it takes from it. Where two ranks are neighbours in
// several ways, what is given with a tag (0 to 32766) is taken with the same.
struct Exchange {
  int rank = 0;
  ConstElements give;
  Elements take;
  int give_tag = 0, take_tag = 0;
};

}  // namespace waywiser
