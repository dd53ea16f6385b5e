#pragma once

#include <string_view>

#include "waywiser/collective/call.hpp"
#include "waywiser/comm/schedule.hpp"

namespace waywiser {

// Collects the steps of a schedule. A transfer has the same round at both of its ranks: then ascending rounds cannot
// deadlock, even if a send ends only when its receive has begun.
class ScheduleMaker {
 public:
  // The call's operation gives the sizes of input and output. Throws like check_call.
  ScheduleMaker(std::string_view algorithm, const CollectiveCall& call);

  // Steps without elements are omitted. Rounds may be added in any order; between two ranks, both must add the
  // transfers of one round in the same order.
  void send(std::uint32_t round, int peer, Block source);
  void receive(std::uint32_t round, int peer, Block destination);
  void receive_reduce(std::uint32_t round, int peer, Block destination);
  void copy(std::uint32_t round, Block destination, Block source);
  void reduce(std::uint32_t round, Block destination, Block source);
  // destination = destination op each of `parts` consecutive blocks from `first` on, in order, one per round. Returns
  // the next round.
  std::uint32_t reduce_in_order(std::uint32_t round, Block destination, Block first, int parts);

  // A free part of scratch.
  Block allocate(std::size_t count);
  Schedule finish();

 private:
  void add(const Step& step);
  Schedule schedule_;
};

}  // namespace waywiser
