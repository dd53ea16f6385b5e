#pragma once

#include <string_view>

#include "waywiser/collective/call.hpp"
#include "waywiser/comm/schedule.hpp"

namespace waywiser {

// Collects the steps of a schedule. A transfer has the same round at both of its ranks: then rounds in order cannot
// deadlock, even if a send ends only when its receive has begun.
class ScheduleMaker {
 public:
  // Sizes of input and output as the call's operation has them. Throws as check_call does.
  ScheduleMaker(std::string_view algorithm, const CollectiveCall& call);

  // Steps without elements are left out. Rounds may come in any order; between two ranks the transfers of one round
  // must be added in the same order at both.
  void send(std::uint32_t round, int peer, Block source);
  void receive(std::uint32_t round, int peer, Block destination);
  void receive_reduce(std::uint32_t round, int peer, Block destination);
  void copy(std::uint32_t round, Block destination, Block source);
  void reduce(std::uint32_t round, Block destination, Block source);
  // destination = destination op each of `parts` blocks that lie one after the other from `first`, in this order, a
  // round each. Returns the round after.
  std::uint32_t reduce_in_order(std::uint32_t round, Block destination, Block first, int parts);

  // Of scratch, where nothing else is.
  Block allocate(std::size_t count);
  Schedule finish();

 private:
  void add(const Step& step);
  Schedule schedule_;
};

}  // namespace waywiser
