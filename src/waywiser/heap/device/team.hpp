#pragma once

#include "waywiser/heap/device/combined.hpp"
#include "waywiser/heap/device/packets.hpp"
#include "waywiser/heap/device/team_meeting.hpp"
#include "waywiser/kernels/copy_body.hpp"

namespace waywiser::one_sided {

// Ranks of a heap that synchronise and exchange arrays inside kernels. All calls are collective: one block of threads
// of each member makes them, all its threads together, in the same order at all members; with another scope one warp or
// thread does. Arrays are in the heap, at the same place at all members; a kernel whose source and destination overlap
// stops. When a call returns, both may be used again. A root is a rank of the team, as are the parts of an array.
template <typename Gpu, Scope scope = Scope::block>
class Team : public TeamMeeting<Gpu, scope> {
  using Base = TeamMeeting<Gpu, scope>;
  using Base::counters, Base::each_member, Base::each_turn, Base::end_meeting, Base::tell_complete, Base::tell_here;
  using Base::gpu_, Base::heap_, Base::terms_, Base::wait_for;

 public:
  using Base::barrier, Base::sync;
  WAYWISER_DEVICE Team(const OneSided<Gpu>& heap, const TeamTerms& terms) : Base(heap, terms) {}

  // All members, the root too, get the root's source: few bytes in packets, which need no quiet() before a member is
  // told.
  template <typename T>
  WAYWISER_DEVICE void broadcast(T* destination, const T* source, std::uint64_t count, int root) const {
    check_apart(destination, count, source, count, true);
    gpu_.join(scope);
    TeamCounters& mine = counters(heap_.rank());
    const std::uint64_t ready = gpu_.read(&mine.arrivals) + 1, there = ready + 1;
    const bool in_packets = count <= team_packet_bytes / sizeof(T) && !heap_.has_proxy();
    if (in_packets) heap_.place(destination, count, heap_.rank());  // or the kernel stops
    if (terms_.rank == root) {
      each_member([&](int member) {
        if (member != root) wait_for(mine, member, ready);
      });
      gpu_.join(scope);
      if (in_packets) {
        each_turn([&](int to, int member) {
          if (to != root)
            store_packets<scope>(gpu_, packets(member), source, count, there);
          else if (destination != source)
            gpu_.give(scope, reinterpret_cast<std::byte*>(destination), reinterpret_cast<const std::byte*>(source),
                      count * sizeof(T));
        });
      } else {
        put_to_all(destination, count, [&](int) { return source; });
        gpu_.join(scope);
        each_member([&](int member) {
          if (member != root) tell_complete(terms_.members[member], there);
        });
      }
    } else {
      if (gpu_.index_in(scope) == 0) {
        tell_here(terms_.members[root], ready);
        if (!in_packets) wait_for(mine, root, there);
      }
      if (in_packets)
        wait_packets<scope>(heap_, destination, packets(heap_.rank()), count, there, terms_.members[root]);
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
  template <typename T>
  WAYWISER_DEVICE void put_to_far(T* destination, const T* source, std::uint64_t count, int to) const {
    put_far<scope, Gpu>({gpu_, heap_.terms()}, destination, reinterpret_cast<const std::byte*>(source), count,
                        sizeof(T), terms_.members[to]);
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
  WAYWISER_DEVICE block::LlPacket* packets(int rank) const {
    std::byte* memory = heap_.terms().ranks[rank] + heap_.terms().counters;
    return reinterpret_cast<block::LlPacket*>(memory + team_packets_at(terms_.slot));
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
};

}  // namespace waywiser::one_sided
