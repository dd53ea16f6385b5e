#pragma once

#include <bitset>
#include <optional>

#include "waywiser/comm/message/rendezvous_tag.hpp"

namespace waywiser {

// Numbers for the RTS of one rank, each of one rendezvous at a time.
class RtsNumbers {
 public:
  // Nothing if all are in use.
  std::optional<unsigned> take() {
    if (taken_.all()) return {};
    while (taken_.test(next_ % rts_numbers)) ++next_;
    const unsigned number = next_++ % rts_numbers;
    taken_.set(number);
    return number;
  }
  void give_back(unsigned number) { taken_.reset(number); }

 private:
  std::bitset<rts_numbers> taken_;
  unsigned next_ = 0;
};

}  // namespace waywiser
