#pragma once

#include "waywiser/heap/device/one_sided.hpp"

namespace waywiser::one_sided {

template <typename T>
WAYWISER_DEVICE constexpr T combined(TeamOp how, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (how == TeamOp::bit_and) return static_cast<T>(a & b);
    if (how == TeamOp::bit_or) return static_cast<T>(a | b);
    if (how == TeamOp::bit_xor) return static_cast<T>(a ^ b);
  }
  switch (how) {
    case TeamOp::sum: return static_cast<T>(a + b);
    case TeamOp::product: return static_cast<T>(a * b);
    case TeamOp::minimum: return b < a ? b : a;
    default: return a < b ? b : a;
  }
}

// Ranks of a heap that synchronise and exchange arrays inside kernels. All calls are collective: one block of threads
// of each member makes them, all its threads together, in the same order at all members; with another scope one warp or
// thread does. Arrays are in the heap, at the same place at all members; a kernel whose source and destination overlap
// stops. When a call returns, both may be used again. A root is a rank of the team, as are the parts of an array.
template <typename Gpu, Scope scope = Scope::block>
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
    check_apart(destination, count, source, count, true);
    sync();
    if (terms_.rank == root)
      for (int to = 0; to < terms_.size; ++to)
        heap_.template put<scope>(destination, source, count, terms_.members[to]);
    barrier();
  }
  // `count` elements of each member, in the order of their ranks.
  template <typename T>
  WAYWISER_DEVICE void all_gather(T* destination, const T* source, std::uint64_t count) const {
    check_apart(destination, of_all(count), source, count, false);
    sync();
    for (int to = 0; to < terms_.size; ++to)
      heap_.template put<scope>(destination + mine(count), source, count, terms_.members[to]);
    barrier();
  }
  // `count` elements for each member, and from each.
  template <typename T>
  WAYWISER_DEVICE void all_to_all(T* destination, const T* source, std::uint64_t count) const {
    check_apart(destination, of_all(count), source, of_all(count), false);
    sync();
    for (int to = 0; to < terms_.size; ++to)
      heap_.template put<scope>(destination + mine(count), source + static_cast<std::uint64_t>(to) * count, count,
                                terms_.members[to]);
    barrier();
  }
  // Element by element over all members, in the order of their ranks: the result is the same at all members. Elements
  // have 1, 2, 4 or 8 bytes. Source and destination may be the same array.
  template <typename T>
  WAYWISER_DEVICE void reduce(T* destination, const T* source, std::uint64_t count, TeamOp how) const {
    check_apart(destination, count, source, count, true);
    sync();
    if (heap_.has_proxy()) return reduce_in_turn(destination, source, count, how);
    const std::uint64_t past = share(count, terms_.rank + 1);
    for (std::uint64_t i = share(count, terms_.rank) + gpu_.index_in(scope); i < past; i += gpu_.count_of(scope)) {
      auto result = gpu_.widen(element(source + i, 0));
      for (int from = 1; from < terms_.size; ++from)
        result = combined(how, result, gpu_.widen(element(source + i, from)));
      for (int to = 0; to < terms_.size; ++to) set_element(destination + i, gpu_.template narrow<T>(result), to);
    }
    barrier();
  }

 private:
  // tell() stores this rank's arrival at a member that is reached, after all that the block has done before.
  template <typename Tell>
  WAYWISER_DEVICE void meet(Tell tell) const {
    TeamCounters& mine = counters(heap_.rank());
    gpu_.join(scope);
    const std::uint64_t arrival = gpu_.read(&mine.arrivals) + 1;
    each_member([&](int member) {
      tell(terms_.members[member], arrival);
      if (heap_.is_proxied(terms_.members[member])) tell_by_proxy(terms_.members[member], arrival);
    });
    each_member([&](int member) { wait_for(mine, member, arrival); });
    gpu_.join(scope);  // all have read the number
    if (gpu_.index_in(scope) == 0) gpu_.write(&mine.arrivals, arrival);
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
    for (unsigned member = gpu_.index_in(scope); member < static_cast<unsigned>(terms_.size);
         member += gpu_.count_of(scope))
      f(static_cast<int>(member));
  }
  // Where the part of reduce() that a member computes begins.
  WAYWISER_DEVICE std::uint64_t share(std::uint64_t count, int rank) const {
    return count * static_cast<std::uint64_t>(rank) / static_cast<std::uint64_t>(terms_.size);
  }
  // The same result where stores do not reach all members: each thread has a few elements at a time, for which the
  // members' elements come one member after the other, in pieces from those that are far.
  template <typename T>
  WAYWISER_DEVICE WAYWISER_APART void reduce_in_turn(T* destination, const T* source, std::uint64_t count,
                                                     TeamOp how) const {
    constexpr std::uint64_t each = 8;
    const std::uint64_t thread = gpu_.index_in(scope), threads = gpu_.count_of(scope);
    const std::uint64_t past = share(count, terms_.rank + 1);
    for (std::uint64_t first = share(count, terms_.rank); first < past; first += each * threads) {
      const std::uint64_t together = past - first < each * threads ? past - first : each * threads;
      decltype(gpu_.widen(T{})) results[each] = {};
      for (int from = 0; from < terms_.size; ++from) {
        const auto take = [&](std::uint64_t i, T value) {
          auto& result = results[i / threads];
          result = from == 0 ? gpu_.widen(value) : combined(how, result, gpu_.widen(value));
        };
        const int member = terms_.members[from];
        if (!heap_.is_proxied(member)) {
          for (std::uint64_t i = thread; i < together; i += threads) take(i, element(source + first + i, from));
          continue;
        }
        ProxyRequest request;
        request.rank = member;
        request.offset = heap_.checked_offset(source + first, together, member);
        request.count = together;
        request.element = request.apart = sizeof(T);
        ProxiedAccess<Gpu>(gpu_, heap_.terms())
            .template get_pieces<scope>(request, [&](const std::byte* piece, std::uint64_t begin,
                                                     const ProxyRequest& part) {
              const std::uint64_t skipped = begin <= thread ? 0 : (begin - thread + threads - 1) / threads * threads;
              for (std::uint64_t i = thread + skipped; i < begin + part.count; i += threads)
                take(i, __builtin_bit_cast(T, gpu_.read(reinterpret_cast<const Bits<T>*>(piece) + (i - begin))));
            });
      }
      for (std::uint64_t i = thread; i < together; i += threads)
        for (int to = 0; to < terms_.size; ++to)
          if (!heap_.is_proxied(terms_.members[to]))
            set_element(destination + first + i, gpu_.template narrow<T>(results[i / threads]), to);
      gpu_.join(scope);
      for (int to = 0; to < terms_.size; ++to)
        if (heap_.is_proxied(terms_.members[to]))
          heap_.template put<scope>(destination + first, destination + first, together, terms_.members[to]);
    }
    barrier();
  }
  WAYWISER_DEVICE TeamCounters& counters(int rank) const {
    std::byte* memory = heap_.terms().ranks[rank] + heap_.terms().counters;
    return reinterpret_cast<TeamCounters*>(memory)[terms_.slot];
  }
  // An element of a member, and its bits.
  template <typename T>
  using Bits = std::conditional_t<sizeof(T) == 1, std::uint8_t,
                                  std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                                     std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;
  template <typename T>
  WAYWISER_DEVICE T element(const T* source, int member) const {
    return __builtin_bit_cast(
        T, gpu_.read(reinterpret_cast<const Bits<T>*>(heap_.place(source, 1, terms_.members[member]))));
  }
  template <typename T>
  WAYWISER_DEVICE void set_element(T* destination, T value, int member) const {
    gpu_.write(reinterpret_cast<Bits<T>*>(heap_.place(destination, 1, terms_.members[member])),
               __builtin_bit_cast(Bits<T>, value));
  }
  // Stops the kernel, before anything has moved.
  template <typename T>
  WAYWISER_DEVICE void check_apart(const T* destination, std::uint64_t to, const T* source, std::uint64_t from,
                                   bool may_be_one) const {
    if (destination < source + from && source < destination + to && !(may_be_one && destination == source))
      heap_.stop_overlap(destination, source, from * sizeof(T));
  }
  WAYWISER_DEVICE std::uint64_t of_all(std::uint64_t count) const {
    return static_cast<std::uint64_t>(terms_.size) * count;
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
