#pragma once

#include "waywiser/heap/device/one_sided.hpp"

namespace waywiser::one_sided {

enum class TeamOp { sum, product, minimum, maximum, bit_and, bit_or, bit_xor };

template <typename T>
WAYWISER_DEVICE constexpr T combined(TeamOp how, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (how == TeamOp::bit_and) return a & b;
    if (how == TeamOp::bit_or) return a | b;
    if (how == TeamOp::bit_xor) return a ^ b;
  }
  switch (how) {
    case TeamOp::sum: return a + b;
    case TeamOp::product: return a * b;
    case TeamOp::minimum: return b < a ? b : a;
    default: return a < b ? b : a;
  }
}

// Ranks of a heap that synchronise and exchange arrays inside kernels. All calls are collective: one block of threads
// of each member makes them, all its threads together, in the same order at all members. Arrays are in the heap, at the
// same place at all members; source and destination must not overlap. When a call returns, both may be used again. A
// root is a rank of the team, as are the parts of an array.
template <typename Gpu>
class Team {
 public:
  WAYWISER_DEVICE Team(const OneSided<Gpu>& heap, const TeamTerms& terms)
      : heap_(heap), gpu_(heap.gpu()), terms_(terms) {}

  WAYWISER_DEVICE int rank() const { return terms_.rank; }
  WAYWISER_DEVICE int size() const { return terms_.size; }
  // The rank in the heap of a member.
  WAYWISER_DEVICE int member(int rank) const { return terms_.members[rank]; }

  // Waits until all members have come. What the block of each has stored before, in its own memory, is visible to all.
  WAYWISER_DEVICE void sync() const {
    meet([&](int member, std::uint64_t arrival) {
      if (!heap_.is_proxied(member)) gpu_.release(&counters(member).arrived[terms_.rank], arrival);
    });
  }
  // The same after quiet(): all earlier puts and gets of the members' blocks are complete. Whoever tells a member is
  // quiet for the whole block, which has joined it.
  WAYWISER_DEVICE void barrier() const {
    meet([&](int member, std::uint64_t arrival) {
      heap_.quiet();
      if (!heap_.is_proxied(member)) gpu_.write(&counters(member).arrived[terms_.rank], arrival);
    });
  }

  // All members, the root too, get the root's source.
  template <typename T>
  WAYWISER_DEVICE void broadcast(T* destination, const T* source, std::uint64_t count, int root) const {
    sync();
    if (terms_.rank == root)
      for (int to = 0; to < terms_.size; ++to)
        heap_.template put<Scope::block>(destination, source, count, terms_.members[to]);
    barrier();
  }
  // `count` elements of each member, in the order of their ranks.
  template <typename T>
  WAYWISER_DEVICE void all_gather(T* destination, const T* source, std::uint64_t count) const {
    sync();
    for (int to = 0; to < terms_.size; ++to)
      heap_.template put<Scope::block>(destination + mine(count), source, count, terms_.members[to]);
    barrier();
  }
  // `count` elements for each member, and from each.
  template <typename T>
  WAYWISER_DEVICE void all_to_all(T* destination, const T* source, std::uint64_t count) const {
    sync();
    for (int to = 0; to < terms_.size; ++to)
      heap_.template put<Scope::block>(destination + mine(count), source + static_cast<std::uint64_t>(to) * count,
                                       count, terms_.members[to]);
    barrier();
  }
  // Element by element over all members, in the order of their ranks: the result is the same at all members.
  template <typename T>
  WAYWISER_DEVICE void reduce(T* destination, const T* source, std::uint64_t count, TeamOp how) const {
    sync();
    if (heap_.has_proxy()) return reduce_in_turn(destination, source, count, how);
    for (std::uint64_t i = gpu_.index_in(Scope::block); i < count; i += gpu_.count_of(Scope::block)) {
      T result = heap_.g(source + i, terms_.members[0]);
      for (int from = 1; from < terms_.size; ++from)
        result = combined(how, result, heap_.g(source + i, terms_.members[from]));
      gpu_.write(destination + i, result);
    }
    barrier();
  }

 private:
  // tell() stores this rank's arrival at a member that is reached, after all that the block has done before.
  template <typename Tell>
  WAYWISER_DEVICE void meet(Tell tell) const {
    TeamCounters& mine = counters(heap_.rank());
    gpu_.join(Scope::block);
    const std::uint64_t arrival = gpu_.read(&mine.arrivals) + 1;
    each_member([&](int member) {
      tell(terms_.members[member], arrival);
      if (heap_.is_proxied(terms_.members[member])) tell_by_proxy(terms_.members[member], arrival);
    });
    each_member([&](int member) { wait_for(mine, member, arrival); });
    gpu_.join(Scope::block);  // all have read the number
    if (gpu_.index_in(Scope::block) == 0) gpu_.write(&mine.arrivals, arrival);
  }
  WAYWISER_DEVICE void tell_by_proxy(int member, std::uint64_t arrival) const {
    ProxyRequest request;
    request.rank = member;
    request.word = heap_.terms().counters + terms_.slot * sizeof(TeamCounters) + sizeof arrival * terms_.rank;
    request.op = WordOp::set;
    request.value = arrival;
    word_by_proxy(gpu_, heap_.terms(), request);
  }
  // One member by each thread.
  template <typename Function>
  WAYWISER_DEVICE void each_member(Function f) const {
    for (unsigned member = gpu_.index_in(Scope::block); member < static_cast<unsigned>(terms_.size);
         member += gpu_.count_of(Scope::block))
      f(static_cast<int>(member));
  }
  // The same result, one member after the other: elements of those that stores do not reach come in pieces.
  template <typename T>
  WAYWISER_DEVICE WAYWISER_APART void reduce_in_turn(T* destination, const T* source, std::uint64_t count,
                                                     TeamOp how) const {
    const std::uint64_t first = gpu_.index_in(Scope::block), apart = gpu_.count_of(Scope::block);
    for (int from = 0; from < terms_.size; ++from) {
      const auto take = [&](std::uint64_t i, T value) {
        gpu_.write(destination + i, from == 0 ? value : combined(how, gpu_.read(destination + i), value));
      };
      const int member = terms_.members[from];
      if (!heap_.is_proxied(member)) {
        for (std::uint64_t i = first; i < count; i += apart) take(i, heap_.g(source + i, member));
        continue;
      }
      ProxyRequest request;
      request.rank = member;
      request.offset = heap_.checked_offset(source, count, member);
      request.count = count;
      request.element = request.apart = sizeof(T);
      // Each thread takes the elements that it has taken before.
      ProxiedAccess<Gpu>(gpu_, heap_.terms())
          .template get_pieces<Scope::block>(
              request, [&](const std::byte* piece, std::uint64_t begin, const ProxyRequest& part) {
                const std::uint64_t skipped = begin <= first ? 0 : (begin - first + apart - 1) / apart * apart;
                for (std::uint64_t i = first + skipped; i < begin + part.count; i += apart)
                  take(i, gpu_.read(reinterpret_cast<const T*>(piece) + (i - begin)));
              });
    }
    barrier();
  }
  WAYWISER_DEVICE TeamCounters& counters(int rank) const {
    std::byte* memory = heap_.terms().ranks[rank] + heap_.terms().counters;
    return reinterpret_cast<TeamCounters*>(memory)[terms_.slot];
  }
  WAYWISER_DEVICE std::uint64_t mine(std::uint64_t count) const {
    return static_cast<std::uint64_t>(terms_.rank) * count;
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
