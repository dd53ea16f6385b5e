#pragma once

#include "waywiser/heap/device/one_sided.hpp"

namespace waywiser::one_sided {

// How the members of a team meet: by counters of each in the memory of all. What Team's collectives are made of.
template <typename Gpu, Scope scope>
class TeamMeeting {
 public:
  WAYWISER_DEVICE TeamMeeting(const OneSided<Gpu>& heap, const TeamTerms& terms)
      : heap_(heap), gpu_(heap.gpu()), terms_(terms) {}

  WAYWISER_DEVICE int rank() const { return terms_.rank; }
  WAYWISER_DEVICE int size() const { return terms_.size; }
  // The rank in the heap of a member.
  WAYWISER_DEVICE int member(int rank) const { return terms_.members[rank]; }

  // Waits until all members have come. What the block of each has stored before, in its own memory, is visible to all.
  WAYWISER_DEVICE void sync() const {
    meet([&](int member, std::uint64_t arrival) { tell_here(member, arrival); });
  }
  // The same after quiet(): all earlier puts and gets of the members' blocks are complete. Whoever tells a member is
  // quiet for the whole block, which has joined it.
  WAYWISER_DEVICE void barrier() const {
    meet([&](int member, std::uint64_t arrival) { tell_complete(member, arrival); });
  }

 protected:
  // tell() says to a member that this rank has come, after all that the block has done before.
  template <typename Tell>
  WAYWISER_DEVICE void meet(Tell tell) const {
    TeamCounters& mine = counters(heap_.rank());
    gpu_.join(scope);
    const std::uint64_t arrival = gpu_.read(&mine.arrivals) + 1;
    each_member([&](int member) { tell(terms_.members[member], arrival); });
    each_member([&](int member) { wait_for(mine, member, arrival); });
    end_meeting(mine, arrival);
  }
  WAYWISER_DEVICE void end_meeting(TeamCounters& mine, std::uint64_t arrival) const {
    gpu_.join(scope);  // all have read the number
    if (gpu_.index_in(scope) == 0) gpu_.write(&mine.arrivals, arrival);
  }
  WAYWISER_DEVICE void tell_here(int member, std::uint64_t arrival) const {
    if (heap_.is_proxied(member))
      tell_by_proxy(member, arrival);
    else
      gpu_.release(&counters(member).arrived[terms_.rank], arrival);
  }
  // That all earlier puts of the block, which has joined, are complete.
  WAYWISER_DEVICE void tell_complete(int member, std::uint64_t arrival) const {
    heap_.quiet();
    if (heap_.is_proxied(member))
      tell_by_proxy(member, arrival);
    else
      gpu_.write(&counters(member).arrived[terms_.rank], arrival);
  }
  WAYWISER_DEVICE void tell_by_proxy(int member, std::uint64_t arrival) const {
    const std::uint64_t offset =
        heap_.terms().counters + terms_.slot * sizeof(TeamCounters) + sizeof arrival * terms_.rank;
    ProxiedAccess<Gpu>(gpu_, heap_.terms()).change_word(offset, arrival, WordOp::set, WordType::bits64, member);
  }
  template <typename Function>
  WAYWISER_DEVICE void each_turn(Function f) const {
    for (int turn = 0, to = terms_.rank; turn < terms_.size; ++turn) {
      f(to, terms_.members[to]);
      if (++to == terms_.size) to = 0;
    }
  }
  // One member by each thread.
  template <typename Function>
  WAYWISER_DEVICE void each_member(Function f) const {
    for (unsigned member = gpu_.index_in(scope); member < static_cast<unsigned>(terms_.size);
         member += gpu_.count_of(scope))
      f(static_cast<int>(member));
  }
  WAYWISER_DEVICE TeamCounters& counters(int rank) const {
    if constexpr (!with_proxy) heap_.place(heap_.template at<std::byte>(0), 0, rank);  // or the kernel stops
    std::byte* memory = heap_.terms().ranks[rank] + heap_.terms().counters;
    return reinterpret_cast<TeamCounters*>(memory)[terms_.slot];
  }
  WAYWISER_DEVICE void wait_for(const TeamCounters& mine, int member, std::uint64_t arrival) const {
    const std::uint64_t* arrived = &mine.arrived[member];
    heap_.wait([&] { return gpu_.acquire(arrived) >= arrival; },
               [&] { heap_.stop_late(arrived, Comparison::ge, arrival, gpu_.read(arrived), terms_.members[member]); });
  }

  const OneSided<Gpu>& heap_;
  Gpu& gpu_;
  const TeamTerms& terms_;
};

}  // namespace waywiser::one_sided
