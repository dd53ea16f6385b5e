#pragma once

#include "waywiser/heap/device/combined.hpp"
#include "waywiser/heap/device/one_sided.hpp"
#include "waywiser/kernels/copy_body.hpp"

namespace waywiser::one_sided {

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
    meet([&](int member, std::uint64_t arrival) { tell_here(member, arrival); });
  }
  // The same after quiet(): all earlier puts and gets of the members' blocks are complete. Whoever tells a member is
  // quiet for the whole block, which has joined it.
  WAYWISER_DEVICE void barrier() const {
    meet([&](int member, std::uint64_t arrival) { tell_complete(member, arrival); });
  }

  // All members, the root too, get the root's source.
  template <typename T>
  WAYWISER_DEVICE void broadcast(T* destination, const T* source, std::uint64_t count, int root) const {
    check_apart(destination, count, source, count, true);
    gpu_.join(scope);
    TeamCounters& mine = counters(heap_.rank());
    const std::uint64_t ready = gpu_.read(&mine.arrivals) + 1, there = ready + 1;
    if (terms_.rank == root) {
      each_member([&](int member) {
        if (member != root) wait_for(mine, member, ready);
      });
      gpu_.join(scope);
      put_to_all(destination, count, [&](int) { return source; });
      gpu_.join(scope);
      each_member([&](int member) {
        if (member != root) tell_complete(terms_.members[member], there);
      });
    } else if (gpu_.index_in(scope) == 0) {
      tell_here(terms_.members[root], ready);
      wait_for(mine, root, there);
    }
    end_meeting(mine, there);
  }
  // `count` elements of each member, in the order of their ranks.
  template <typename T>
  WAYWISER_DEVICE void all_gather(T* destination, const T* source, std::uint64_t count) const {
    check_apart(destination, of_all(count), source, count, false);
    sync();
    put_to_all(destination + mine(count), count, [&](int) { return source; });
    barrier();
  }
  // `count` elements for each member, and from each.
  template <typename T>
  WAYWISER_DEVICE void all_to_all(T* destination, const T* source, std::uint64_t count) const {
    check_apart(destination, of_all(count), source, of_all(count), false);
    sync();
    put_to_all(destination + mine(count), count,
               [&](int to) { return source + static_cast<std::uint64_t>(to) * count; });
    barrier();
  }
  // Element by element over all members, in the order of their ranks: the result is the same at all members. Elements
  // have 1, 2, 4 or 8 bytes. Source and destination may be the same array.
  template <typename T>
  WAYWISER_DEVICE void reduce(T* destination, const T* source, std::uint64_t count, TeamOp how) const {
    check_apart(destination, count, source, count, true);
    sync();
    constexpr unsigned together = sizeof(T) == 8 ? 2 : 4;
    if (heap_.has_proxy())
      reduce_in_turn(destination, source, count, how);
    else if ((reinterpret_cast<std::uintptr_t>(destination) | reinterpret_cast<std::uintptr_t>(source) |
              count * sizeof(T)) %
                 (together * sizeof(T)) ==
             0)
      reduce_units<together>(destination, source, count, how);
    else
      reduce_units<1>(destination, source, count, how);
    barrier();
  }

 private:
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
  // `count` elements for each member, by threads that have joined. Members whose turn is the same get theirs from
  // different ones.
  template <typename T, typename Source>
  WAYWISER_DEVICE void put_to_all(T* destination, std::uint64_t count, Source source) const {
    each_turn([&](int to, int member) {
      if (heap_.is_proxied(member)) return;
      if constexpr (Gpu::is_staged)
        heap_.template put<scope>(destination, source(to), count, member);
      else
        gpu_.give(scope, reinterpret_cast<std::byte*>(heap_.place(destination, count, member)),
                  reinterpret_cast<const std::byte*>(source(to)), count * sizeof(T));
    });
    if (heap_.has_proxy())
      each_turn([&](int to, int member) {
        if (heap_.is_proxied(member)) put_to_far(destination, source(to), count, to);
      });
  }
  template <typename Function>
  WAYWISER_DEVICE void each_turn(Function f) const {
    for (int turn = 0, to = terms_.rank; turn < terms_.size; ++turn) {
      f(to, terms_.members[to]);
      if (++to == terms_.size) to = 0;
    }
  }
  template <typename T>
  WAYWISER_DEVICE void put_to_far(T* destination, const T* source, std::uint64_t count, int to) const {
    put_far<scope, Gpu>({gpu_, heap_.terms()}, destination, reinterpret_cast<const std::byte*>(source), count,
                        sizeof(T), terms_.members[to]);
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
    const auto size = static_cast<std::uint64_t>(terms_.size), place = static_cast<std::uint64_t>(rank);
    const std::uint64_t each = count / size, rest = count - each * size;
    return each * place + (place < rest ? place : rest);
  }
  // The elements, of which so many lie together, of this member's share. A thread has some of one member under way at
  // a time.
  template <unsigned together, typename T>
  WAYWISER_DEVICE void reduce_units(T* destination, const T* source, std::uint64_t count, TeamOp how) const {
    constexpr unsigned batch = 2;
    using Unit = Vector<T, together>;
    for (int each = 0; each < terms_.size; ++each) {
      heap_.place(source, count, terms_.members[each]);
      heap_.place(destination, count, terms_.members[each]);
    }
    const std::uint64_t from = heap_.offset_of(source), to = heap_.offset_of(destination), units = count / together;
    const std::uint64_t past = share(units, terms_.rank + 1), threads = gpu_.count_of(scope);
    for (std::uint64_t i = share(units, terms_.rank) + gpu_.index_in(scope); i < past; i += batch * threads) {
      decltype(gpu_.widen(T{})) results[batch][together];
      Unit taken[batch] = {};
      for (int each = 0; each < terms_.size; ++each) {
        const auto* theirs = reinterpret_cast<const Unit*>(memory(each) + from) + i;
        WAYWISER_UNROLL
        for (unsigned k = 0; k < batch; ++k)
          if (i + k * threads < past) taken[k] = theirs[k * threads];
        WAYWISER_UNROLL
        for (unsigned k = 0; k < batch; ++k) {
          WAYWISER_UNROLL
          for (unsigned j = 0; j < together; ++j) {
            const auto value = gpu_.widen(taken[k].words[j]);
            results[k][j] = each == 0 ? value : combined(how, results[k][j], value);
          }
        }
      }
      WAYWISER_UNROLL
      for (unsigned k = 0; k < batch; ++k) {
        WAYWISER_UNROLL
        for (unsigned j = 0; j < together; ++j) taken[k].words[j] = gpu_.template narrow<T>(results[k][j]);
      }
      each_turn([&](int each, int) {
        auto* theirs = reinterpret_cast<Unit*>(memory(each) + to) + i;
        WAYWISER_UNROLL
        for (unsigned k = 0; k < batch; ++k)
          if (i + k * threads < past) theirs[k * threads] = taken[k];
      });
    }
  }
  WAYWISER_DEVICE std::byte* memory(int member) const { return heap_.terms().ranks[terms_.members[member]]; }
  // What reduce() computes where stores do not reach all members: each thread has a few elements at a time, for which
  // the members' elements come one member after the other, in pieces from those that are far.
  template <typename T>
  WAYWISER_DEVICE void reduce_in_turn(T* destination, const T* source, std::uint64_t count, TeamOp how) const {
    constexpr unsigned batch = 1;  // a piece has room for those of a block
    const unsigned thread = gpu_.index_in(scope), threads = gpu_.count_of(scope);
    const unsigned at_once = batch * threads;
    const std::uint64_t past = share(count, terms_.rank + 1);
    heap_.place(source, count, heap_.rank());
    heap_.place(destination, count, heap_.rank());
    for (std::uint64_t first = share(count, terms_.rank); first < past; first += at_once) {
      const auto together = static_cast<unsigned>(past - first < at_once ? past - first : at_once);
      decltype(gpu_.widen(T{})) results[batch] = {};
      for (int from = 0; from < terms_.size; ++from) {
        const int member = terms_.members[from];
        const auto take = [&](const void* elements) {
          const auto* theirs = static_cast<const Bits<T>*>(elements);
          WAYWISER_UNROLL
          for (unsigned k = 0; k < batch; ++k) {
            const unsigned i = thread + k * threads;
            if (i >= together) continue;
            const auto value = gpu_.widen(__builtin_bit_cast(T, gpu_.read(theirs + i)));
            results[k] = from == 0 ? value : combined(how, results[k], value);
          }
        };
        const bool is_far = heap_.is_proxied(member);
        if constexpr (scope == Scope::thread)
          if (is_far) {
            const ProxiedAccess<Gpu> far(gpu_, heap_.terms());
            far.template get_pieces<scope>(
                far.request_for(source + first, together, sizeof(T), member),
                [&](const std::byte* piece, std::uint64_t, const ProxyRequest&) { take(piece); });
            continue;
          }
        std::uint64_t ticket = 0;
        if (is_far) ticket = piece_far<scope, Gpu>({gpu_, heap_.terms()}, source + first, together * sizeof(T), member);
        take(is_far ? static_cast<const void*>(heap_.terms().ring->piece(ticket))
                    : memory(from) + heap_.offset_of(source + first));
        if (is_far) ProxiedAccess<Gpu>(gpu_, heap_.terms()).template end<scope>(ticket);
      }
      for (int to = 0; to < terms_.size; ++to) {
        if (heap_.is_proxied(terms_.members[to])) continue;
        auto* theirs = reinterpret_cast<Bits<T>*>(memory(to) + heap_.offset_of(destination + first));
        WAYWISER_UNROLL
        for (unsigned k = 0; k < batch; ++k)
          if (const unsigned i = thread + k * threads; i < together)
            gpu_.write(theirs + i, __builtin_bit_cast(Bits<T>, gpu_.template narrow<T>(results[k])));
      }
      gpu_.join(scope);
      for (int to = 0; to < terms_.size; ++to)
        if (heap_.is_proxied(terms_.members[to])) put_to_far(destination + first, destination + first, together, to);
    }
  }
  WAYWISER_DEVICE TeamCounters& counters(int rank) const {
    if constexpr (!with_proxy) heap_.place(heap_.template at<std::byte>(0), 0, rank);  // or the kernel stops
    std::byte* memory = heap_.terms().ranks[rank] + heap_.terms().counters;
    return reinterpret_cast<TeamCounters*>(memory)[terms_.slot];
  }
  // The bits of an element.
  template <typename T>
  using Bits = std::conditional_t<sizeof(T) == 1, std::uint8_t,
                                  std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                                     std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;
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
