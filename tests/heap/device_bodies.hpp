#pragma once

// Kernels that make every device call and compare with what plain arrays say, for two ranks or more: one source for
// hosts and virtual GPUs (device_calls_test.cpp) and for GPUs (cuda/device_calls_on_gpus_test.cu).
#include "tests/heap/litmus_bodies.hpp"

namespace waywiser::one_sided {

// Two warps and a half; on a host all threads run in turn, so there are fewer. At least 30.
constexpr unsigned body_threads = 80, body_threads_of_host = 33;
constexpr std::uint64_t body_bytes = 4 << 20;

// What a kernel finds first that is not as it should be; at the beginning of its rank's memory.
struct Verdict {
  std::uint32_t line = 0;  // of this file
  std::uint32_t thread = 0;
  std::uint64_t index = 0;
  double seen = 0, wanted = 0;
};

struct BodyTerms {
  TeamTerms team;           // all ranks
  std::uint64_t turns = 0;  // of a litmus test
  std::uint64_t times = 0;  // of atomics of each thread
  unsigned unit_step = 1;   // of the threads that make calls alone: the first of so many
  // 4096 bytes of GPU memory by tickets: this rank's, which the left one has opened, and the right one's.
  std::byte *mine = nullptr, *theirs = nullptr;
};

// A rank's view of one kernel.
template <typename Gpu>
struct BodyRanks {
  const OneSided<Gpu>& ranks;
  const BodyTerms& terms;

  WAYWISER_DEVICE int rank() const { return ranks.rank(); }
  WAYWISER_DEVICE unsigned threads() const { return ranks.gpu().threads(); }
  WAYWISER_DEVICE int right() const { return (ranks.rank() + 1) % ranks.size(); }
  WAYWISER_DEVICE int left() const { return (ranks.rank() + ranks.size() - 1) % ranks.size(); }
  template <typename T>
  WAYWISER_DEVICE T* at(std::uint64_t offset) const {
    return ranks.template at<T>(offset);
  }
  WAYWISER_DEVICE void barrier() const { Team<Gpu>(ranks, terms.team).barrier(); }
  WAYWISER_DEVICE bool leads() const { return ranks.gpu().index_in(Scope::block) == 0; }

  template <typename T>
  WAYWISER_DEVICE void need(T seen, std::type_identity_t<T> wanted, std::uint64_t index,
                            unsigned line = __builtin_LINE()) const {
    if (seen != wanted) write_verdict(line, index, static_cast<double>(seen), static_cast<double>(wanted));
  }
  // f(unit) by each thread, each warp, or the block.
  template <Scope scope, typename Function>
  WAYWISER_DEVICE void each_unit(Function f) const {
    if constexpr (scope == Scope::thread)
      ranks.gpu().each_thread([&](unsigned unit) {
        if (unit % terms.unit_step == 0) f(unit);
      });
    else if constexpr (scope == Scope::warp)
      ranks.gpu().each_warp(f);
    else
      f(0u);
  }
  // f(i) for 0 to count - 1 by the threads of a unit.
  template <Scope scope, typename Function>
  WAYWISER_DEVICE void each(std::uint64_t count, Function f) const {
    for (std::uint64_t i = ranks.gpu().index_in(scope); i < count; i += ranks.gpu().count_of(scope)) f(i);
  }

 private:
  WAYWISER_DEVICE WAYWISER_APART void write_verdict(unsigned line, std::uint64_t index, double seen,
                                                    double wanted) const {
    auto* verdict = at<Verdict>(0);
    if (ranks.atomic_compare_swap(&verdict->line, 0, line, rank()) != 0) return;
    verdict->thread = ranks.gpu().index_in(Scope::block);
    verdict->index = index;
    verdict->seen = seen;
    verdict->wanted = wanted;
  }
};

template <typename T>
WAYWISER_DEVICE T body_value(int rank, std::uint64_t i, std::uint64_t turn) {
  return static_cast<T>((static_cast<std::uint64_t>(rank) * 31 + i * 7 + turn * 13) % 101 + 1);
}

// Bytes of many counts and alignments go around the ring, each block with its signal.
struct PutsWithSignals {
  template <Scope scope, typename Gpu>
  WAYWISER_DEVICE static void in_scope(const BodyRanks<Gpu>& body) {
    constexpr std::uint64_t area = scope == Scope::block ? 1 << 17 : 1 << 10;
    constexpr std::uint64_t words_at = 4096 * (1 + static_cast<std::uint64_t>(scope));
    body.template each_unit<scope>([&](unsigned unit) {
      auto *signal = body.template at<std::uint64_t>(words_at) + unit, *taken_by_right = signal + 128;
      auto* given = body.template at<std::uint8_t>((1 << 17) + unit * area);
      auto* taken = body.template at<std::uint8_t>((1 << 19) + unit * area);
      const std::uint64_t counts[] = {0, 1, 7, 8, 20, 64, 900, 100001};
      const unsigned shifts[] = {0, 1, 8}, own_shifts[] = {0, 4};
      std::uint64_t turn = 0;
      for (const std::uint64_t count : counts)
        for (const unsigned shift : shifts)
          for (const unsigned own_shift : own_shifts) {
            if (count + shift + 1 > area || count + own_shift > area) continue;
            ++turn;
            body.template each<scope>(
                count, [&](std::uint64_t i) { given[own_shift + i] = body_value<std::uint8_t>(body.rank(), i, turn); });
            if (body.ranks.gpu().index_in(scope) == 0) taken[shift + count] = 200;
            body.ranks.template fence<scope>();
            body.ranks.template put_with_signal<scope>(taken + shift, given + own_shift, count, signal,
                                                       turn % 2 == 0 ? turn : 1,
                                                       turn % 2 == 0 ? SignalOp::set : SignalOp::add, body.right());
            body.ranks.template wait_until<scope>(signal, Comparison::eq, turn, body.left());
            body.template each<scope>(count, [&](std::uint64_t i) {
              body.need(taken[shift + i], body_value<std::uint8_t>(body.left(), i, turn), i);
            });
            body.need(taken[shift + count], 200, count);
            body.ranks.template fence<scope>();  // the bytes are read
            if (body.ranks.gpu().index_in(scope) == 0) body.ranks.signal_add(taken_by_right, 1, body.left());
            body.ranks.template wait_until<scope>(taken_by_right, Comparison::ge, turn, body.right());
          }
    });
  }
  template <typename Gpu>
  WAYWISER_DEVICE static void run(const BodyRanks<Gpu>& body) {
    in_scope<Scope::thread>(body);
    body.barrier();
    in_scope<Scope::warp>(body);
    body.barrier();
    in_scope<Scope::block>(body);
  }
};

// put, get, get_nbi, iput, iget, p, g and pointer, between barriers.
struct PutsAndGets {
  static constexpr std::uint64_t given_at = 4096, seen_at = 1 << 18, put_at = 1 << 19;

  template <typename T, Scope scope, typename Gpu>
  WAYWISER_DEVICE static void in_scope(const BodyRanks<Gpu>& body, std::uint64_t turn) {
    auto* given = body.template at<T>(given_at);
    constexpr std::uint64_t all = 2000, area = 128, count = 41;
    const auto of = [&](int rank, std::uint64_t i) { return body_value<T>(rank, i, turn); };
    body.template each<Scope::block>(all, [&](std::uint64_t i) { given[i] = of(body.rank(), i); });
    body.template each<Scope::block>(body.threads() * area, [&](std::uint64_t i) {
      body.template at<T>(seen_at)[i] = T{};
      body.template at<T>(put_at)[i] = T{};
    });
    body.barrier();
    const int right = body.right();
    body.template each_unit<scope>([&](unsigned unit) {
      T *seen = body.template at<T>(seen_at) + unit * area, *put = body.template at<T>(put_at) + unit * area;
      const T* from = given + unit;
      const auto joined = [&] { body.ranks.template fence<scope>(); };
      body.ranks.template get<scope>(seen, from, count, right);
      body.template each<scope>(count, [&](std::uint64_t i) { body.need(seen[i], of(right, unit + i), i); });
      joined();
      body.ranks.template get_nbi<scope>(seen + 1, from, count, right);
      body.ranks.template quiet<scope>();
      body.template each<scope>(count, [&](std::uint64_t i) { body.need(seen[1 + i], of(right, unit + i), i); });
      joined();
      body.ranks.template iget<scope>(seen, from, 2, 3, 20, right);
      body.template each<scope>(20, [&](std::uint64_t i) {
        body.need(seen[2 * i], of(right, unit + 3 * i), i);
        if (i > 0) body.need(seen[2 * i + 1], of(right, unit + 2 * i), i);
      });
      body.ranks.template put<scope>(put, from, count, right);
      joined();  // what follows goes to the same places
      body.ranks.template iput<scope>(put, from + 50, 2, 3, 20, right);
      if constexpr (sizeof(T) >= 4)
        if (body.ranks.gpu().index_in(scope) == 0) {
          body.ranks.p(put + count, of(body.rank(), 99), right);
          body.need(body.ranks.g(given + 77, right), of(right, 77), unit);
          if (const T* there = body.ranks.pointer(given, right)) body.need(there[78], of(right, 78), unit);
        }
    });
    body.barrier();
    const int left = body.left();
    body.template each_unit<scope>([&](unsigned unit) {
      const T* put = body.template at<T>(put_at) + unit * area;
      body.template each<scope>(count, [&](std::uint64_t i) {
        body.need(put[i], of(left, i % 2 == 0 && i < 40 ? unit + 50 + i / 2 * 3 : unit + i), i);
      });
      if constexpr (sizeof(T) >= 4) body.need(put[count], of(left, 99), count);
      body.need(put[count + 1], T{}, count + 1);
    });
    body.barrier();
  }
  template <typename Gpu>
  WAYWISER_DEVICE static void run(const BodyRanks<Gpu>& body) {
    in_scope<std::uint8_t, Scope::warp>(body, 1);
    in_scope<int, Scope::thread>(body, 2);
    in_scope<float, Scope::block>(body, 3);
    in_scope<double, Scope::thread>(body, 4);
    in_scope<std::uint64_t, Scope::warp>(body, 5);
    in_scope<double, Scope::block>(body, 6);
  }
};

// All threads of all ranks work on the words of rank 0.
struct Atomics {
  template <typename T, typename Gpu>
  WAYWISER_DEVICE static void sums(const BodyRanks<Gpu>& body, std::uint64_t offset) {
    T* word = body.template at<T>(offset);
    const auto& ranks = body.ranks;
    const std::uint64_t times = body.terms.times;
    ranks.gpu().each_thread([&](unsigned) {
      for (std::uint64_t i = 0; i < times; ++i) {
        ranks.atomic_add(word, T{2}, 0);
        ranks.atomic_add(word + 2, ranks.atomic_fetch_add(word + 1, T{1}, 0), 0);
      }
    });
    body.barrier();
    const std::uint64_t all = times * body.threads() * static_cast<std::uint64_t>(ranks.size());
    if (body.rank() == 0 && body.leads()) {
      body.need(ranks.g(word, 0), static_cast<T>(2 * all), 0);
      body.need(ranks.g(word + 1, 0), static_cast<T>(all), 1);
      body.need(ranks.g(word + 2, 0), static_cast<T>(all * (all - 1) / 2), 2);  // each number was fetched once
    }
  }
  template <typename T, typename Gpu>
  WAYWISER_DEVICE static void whole(const BodyRanks<Gpu>& body, std::uint64_t offset) {
    T* word = body.template at<T>(offset);
    const auto& ranks = body.ranks;
    const std::uint64_t times = body.terms.times;
    ranks.gpu().each_thread([&](unsigned thread) {
      const T bit = static_cast<T>(T{1} << (thread % 30));
      for (std::uint64_t i = 0; i < times; ++i) {
        ranks.atomic_inc(word, 0);
        ranks.atomic_add(word + 2, ranks.atomic_fetch_inc(word + 1, 0), 0);
        ranks.atomic_add(word + 3, ranks.atomic_swap(word + 4, T{7}, 0), 0);
        ranks.atomic_fetch_xor(word + 5, bit, 0);
      }
      for (T seen = ranks.atomic_fetch(word + 6, 0);;) {
        const T before = ranks.atomic_compare_swap(word + 6, seen, static_cast<T>(seen + 2), 0);
        if (before == seen) break;
        seen = before;
      }
      ranks.atomic_compare_swap(word + 6, static_cast<T>(-5), T{0}, 0);  // it is never -5
      ranks.atomic_fetch_or(word + 7, bit, 0);
      ranks.atomic_set(word + 8, static_cast<T>(-9), 0);
    });
    body.barrier();
    const std::uint64_t threads = std::uint64_t{body.threads()} * static_cast<std::uint64_t>(ranks.size());
    const std::uint64_t all = times * threads;
    if (body.rank() == 0 && body.leads()) {
      const T wanted[] = {static_cast<T>(all),
                          static_cast<T>(all),
                          static_cast<T>(all * (all - 1) / 2),
                          static_cast<T>(7 * (all - 1)),
                          T{7},
                          T{0},
                          static_cast<T>(2 * threads),
                          T{(1 << 30) - 1},
                          static_cast<T>(-9)};
      for (unsigned i = 0; i < 9; ++i) body.need(ranks.g(word + i, 0), wanted[i], i);
    }
    body.barrier();
    ranks.gpu().each_thread([&](unsigned thread) {
      if (thread % 2 == 0) ranks.atomic_fetch_and(word + 7, static_cast<T>(~(T{1} << (thread % 30))), 0);
    });
    body.barrier();
    if (body.rank() == 0 && body.leads()) body.need(ranks.g(word + 7, 0), T{0x2aaaaaaa}, 7);
  }
  template <typename Gpu>
  WAYWISER_DEVICE static void run(const BodyRanks<Gpu>& body) {
    sums<float>(body, 4096);
    sums<double>(body, 8192);
    sums<std::uint32_t>(body, 12288);
    sums<std::int64_t>(body, 16384);
    whole<std::int32_t>(body, 20480);
    whole<std::uint32_t>(body, 24576);
    whole<std::int64_t>(body, 28672);
    whole<std::uint64_t>(body, 32768);
  }
};

// Tests and waits for several words, by one thread; wait_until with each comparison, in each scope.
struct Waits {
  template <typename T, typename Gpu>
  WAYWISER_DEVICE static void several(const BodyRanks<Gpu>& body, std::uint64_t offset) {
    T* words = body.template at<T>(offset);
    const auto& ranks = body.ranks;
    if (body.rank() == 1) {
      ranks.wait_until(words + 8, Comparison::eq, 1, 0);  // rank 0 has looked
      const std::uint64_t order[] = {2, 0, 1, 3};
      for (const std::uint64_t i : order) ranks.p(words + i, static_cast<T>(i + 5), 0);
    }
    if (body.rank() != 0) return;
    const int without_second[] = {0, 1, 0, 0}, none[] = {1, 1, 1, 1};
    std::uint64_t places[4] = {};
    body.need(ranks.test_any(words, 4, nullptr, Comparison::ge, 5), 4, 0);
    body.need(ranks.test_all(words, 4, nullptr, Comparison::ne, 0), false, 0);
    body.need(ranks.test_all(words, 4, none, Comparison::ne, 0), true, 0);
    body.need(ranks.wait_until_some(words, 4, places, none, Comparison::ge, 5), 0, 0);
    body.need(ranks.wait_until_any(words, 4, none, Comparison::ge, 5), 4, 0);
    ranks.p(words + 8, T{1}, 1);
    const std::uint64_t any = ranks.wait_until_any(words, 4, without_second, Comparison::ge, 5);
    body.need(any != 1 && any < 4, true, any);
    body.need(ranks.g(words + any, 0), static_cast<T>(any + 5), any);
    const T values[] = {5, 6, 7, 8};
    ranks.wait_until_all_vector(words, 4, nullptr, Comparison::eq, values);
    ranks.wait_until_all(words, 4, nullptr, Comparison::gt, 4);
    body.need(ranks.wait_until_some(words, 4, places, without_second, Comparison::lt, 8), 2, 0);
    body.need(places[0], 0, 0);
    body.need(places[1], 2, 1);
    body.need(ranks.test_some(words, 4, places, nullptr, Comparison::le, 6), 2, 0);
    body.need(ranks.test(words, Comparison::eq, 5) && !ranks.test(words, Comparison::ne, 5), true, 0);
  }
  template <Scope scope, typename T, typename Gpu>
  WAYWISER_DEVICE static void compared(const BodyRanks<Gpu>& body, std::uint64_t offset) {
    body.template each_unit<scope>([&](unsigned unit) {
      T* word = body.template at<T>(offset) + unit * 8;
      if (body.ranks.gpu().index_in(scope) == 0)
        for (unsigned i = 0; i < 6; ++i) body.ranks.p(word + i, static_cast<T>(-3), body.right());
      body.ranks.template wait_until<scope>(word, Comparison::eq, static_cast<T>(-3), body.left());
      body.ranks.template wait_until<scope>(word + 1, Comparison::ne, 0, body.left());
      if constexpr (std::is_signed_v<T>) {
        body.ranks.template wait_until<scope>(word + 2, Comparison::lt, 0, body.left());
        body.ranks.template wait_until<scope>(word + 3, Comparison::le, -3, body.left());
      } else {
        body.ranks.template wait_until<scope>(word + 4, Comparison::gt, 0, body.left());
        body.ranks.template wait_until<scope>(word + 5, Comparison::ge, static_cast<T>(-3), body.left());
      }
    });
  }
  template <typename Gpu>
  WAYWISER_DEVICE static void run(const BodyRanks<Gpu>& body) {
    if (body.leads()) {
      several<std::uint64_t>(body, 4096);
      several<std::int32_t>(body, 8192);
    }
    body.barrier();
    compared<Scope::thread, std::int32_t>(body, 1 << 14);
    compared<Scope::warp, std::uint32_t>(body, 1 << 15);
    compared<Scope::block, std::int64_t>(body, 1 << 16);
    compared<Scope::thread, std::uint64_t>(body, 1 << 17);
  }
};

// All collectives of the team, twice without anything between.
struct TeamCalls {
  template <typename T, typename Gpu>
  WAYWISER_DEVICE static void of_type(const BodyRanks<Gpu>& body, std::uint64_t turn) {
    const Team<Gpu> team(body.ranks, body.terms.team);
    const auto parts = static_cast<std::uint64_t>(team.size());
    auto *source = body.template at<T>(4096), *told = body.template at<T>(1 << 16);
    auto *gathered = body.template at<T>(1 << 17), *turned = body.template at<T>(1 << 18);
    auto* sums = body.template at<T>(1 << 19);
    const std::uint64_t counts[] = {1, 213};
    for (const std::uint64_t count : counts) {
      const auto of = [&](std::uint64_t member, std::uint64_t i) {
        return body_value<T>(static_cast<int>(member), i, turn + count);
      };
      const auto me = static_cast<std::uint64_t>(team.rank());
      body.template each<Scope::block>(count * parts, [&](std::uint64_t i) { source[i] = of(me, i); });
      const int root = static_cast<int>((turn + count) % parts);
      team.broadcast(told, source, count, root);
      team.all_gather(gathered, source, count);
      team.all_to_all(turned, source, count);
      body.template each<Scope::block>(
          count, [&](std::uint64_t i) { body.need(told[i], of(static_cast<std::uint64_t>(root), i), i); });
      body.template each<Scope::block>(count * parts, [&](std::uint64_t i) {
        body.need(gathered[i], of(i / count, i % count), i);
        body.need(turned[i], of(i / count, me * count + i % count), i);
      });
      const TeamOp ops[] = {TeamOp::sum,     TeamOp::product, TeamOp::minimum, TeamOp::maximum,
                            TeamOp::bit_and, TeamOp::bit_or,  TeamOp::bit_xor};
      for (int op = 0; op < (std::is_integral_v<T> ? 7 : 4); ++op) {
        team.reduce(sums, source, count, ops[op]);
        body.template each<Scope::block>(count, [&](std::uint64_t i) {
          T wanted = of(0, i);
          for (std::uint64_t member = 1; member < parts; ++member) wanted = combined(ops[op], wanted, of(member, i));
          body.need(sums[i], wanted, i);
        });
      }
    }
  }
  // By the first warp, thread, or all of the block, in place.
  template <Scope scope, typename T, typename Gpu>
  WAYWISER_DEVICE static void in_place(const BodyRanks<Gpu>& body) {
    constexpr std::uint64_t count = 37;
    auto* numbers = body.template at<T>(1 << 18);
    body.barrier();
    if (scope == Scope::block || body.ranks.gpu().index_in(Scope::block) < (scope == Scope::warp ? 32u : 1u)) {
      const Team<Gpu, scope> team(body.ranks, body.terms.team);
      body.template each<scope>(count, [&](std::uint64_t i) { numbers[i] = body_value<T>(body.rank(), i, 9); });
      team.reduce(numbers, numbers, count, TeamOp::sum);
      body.template each<scope>(count, [&](std::uint64_t i) {
        T wanted = body_value<T>(0, i, 9);
        for (int rank = 1; rank < team.size(); ++rank)
          wanted = combined(TeamOp::sum, wanted, body_value<T>(rank, i, 9));
        body.need(numbers[i], wanted, i);
      });
      team.barrier();
    }
    body.barrier();
  }
  template <typename Gpu>
  WAYWISER_DEVICE static void run(const BodyRanks<Gpu>& body) {
    in_place<Scope::thread, std::uint8_t>(body);
    in_place<Scope::warp, std::uint16_t>(body);
    in_place<Scope::warp, double>(body);
    in_place<Scope::block, std::int16_t>(body);
    in_place<Scope::block, float>(body);
    of_type<std::uint64_t>(body, 1);
    of_type<std::int32_t>(body, 2);
    of_type<float>(body, 3);
    of_type<double>(body, 4);
    // What is stored before sync() is there after it.
    const Team<Gpu> team(body.ranks, body.terms.team);
    auto* word = body.template at<std::uint64_t>(1 << 20);
    for (std::uint64_t turn = 1; turn <= body.terms.turns; ++turn) {
      body.template each<Scope::block>(body.threads(), [&](std::uint64_t i) { word[turn % 2 * 128 + i] = turn + i; });
      team.sync();
      body.template each<Scope::block>(body.threads(), [&](std::uint64_t i) {
        body.need(body.ranks.g(word + turn % 2 * 128 + i, body.right()), turn + i, i);
      });
    }
  }
};

struct PacketCalls {
  template <Scope scope, typename Gpu>
  WAYWISER_DEVICE static void in_scope(const BodyRanks<Gpu>& body, std::uint64_t words_at) {
    constexpr std::uint64_t area = scope == Scope::block ? 1 << 15 : 1 << 9;
    body.template each_unit<scope>([&](unsigned unit) {
      auto* read = body.template at<std::uint64_t>(words_at) + unit;
      auto* packets = body.template at<block::LlPacket>((1 << 20) + unit * (2 * area + 64));
      auto* given = body.template at<std::uint8_t>((1 << 17) + unit * area);
      auto* taken = body.template at<std::uint8_t>((1 << 18) + unit * area);
      const std::uint64_t counts[] = {0, 1, 7, 8, 9, 64, 400, 19999};
      const unsigned shifts[] = {0, 1, 4, 8};
      std::uint64_t number = words_at;  // others than before
      std::uint64_t turn = 0;
      for (const std::uint64_t count : counts)
        for (const unsigned shift : shifts) {
          if (count + shift + 1 > area) continue;
          ++number;
          ++turn;
          body.template each<scope>(
              count, [&](std::uint64_t i) { given[shift + i] = body_value<std::uint8_t>(body.rank(), i, turn); });
          if (body.ranks.gpu().index_in(scope) == 0) taken[shift + count] = 200;
          put_packets<scope>(body.ranks, packets, given + shift, count, number, body.right());
          wait_packets<scope>(body.ranks, taken + shift, packets, count, number, body.left());
          body.template each<scope>(count, [&](std::uint64_t i) {
            body.need(taken[shift + i], body_value<std::uint8_t>(body.left(), i, turn), i);
          });
          body.need(taken[shift + count], 200, count);
          body.ranks.template fence<scope>();
          if (body.ranks.gpu().index_in(scope) == 0) body.ranks.signal_add(read, 1, body.left());
          body.ranks.template wait_until<scope>(read, Comparison::ge, turn, body.right());
        }
    });
  }
  template <typename Gpu>
  WAYWISER_DEVICE static void run(const BodyRanks<Gpu>& body) {
    in_scope<Scope::thread>(body, 4096);
    body.barrier();
    in_scope<Scope::warp>(body, 8192);
    body.barrier();
    in_scope<Scope::block>(body, 12288);
  }
};

// Memory that was there before, by its address.
struct OpenedMemory {
  template <typename Gpu>
  WAYWISER_DEVICE static void run(const BodyRanks<Gpu>& body) {
    if (body.terms.mine == nullptr) return;
    const auto& ranks = body.ranks;
    auto *mine = reinterpret_cast<std::uint64_t*>(body.terms.mine),
         *theirs = reinterpret_cast<std::uint64_t*>(body.terms.theirs);
    auto* given = body.template at<std::uint64_t>(4096);
    body.template each<Scope::block>(100,
                                     [&](std::uint64_t i) { given[i] = body_value<std::uint64_t>(body.rank(), i, 0); });
    ranks.template put_with_signal<Scope::block>(theirs + 8, given, 100, theirs, 1, SignalOp::set, opened);
    ranks.template wait_until<Scope::block>(mine, Comparison::eq, 1, body.left());
    body.template each<Scope::block>(
        100, [&](std::uint64_t i) { body.need(mine[8 + i], body_value<std::uint64_t>(body.left(), i, 0), i); });
    body.barrier();
    ranks.template get<Scope::block>(given + 200, theirs + 8, 100, opened);
    body.template each<Scope::block>(
        100, [&](std::uint64_t i) { body.need(given[200 + i], body_value<std::uint64_t>(body.rank(), i, 0), i); });
    ranks.gpu().each_thread([&](unsigned) { ranks.atomic_inc(theirs + 1, opened); });
    if (body.leads()) ranks.p(theirs + 2, std::uint64_t{5}, opened);
    body.barrier();
    if (body.leads()) {
      body.need(mine[1], body.threads(), 1);
      body.need(ranks.g(mine + 2, opened), 5, 2);
    }
  }
};

// Litmus tests of ranks 0 and 1 by one thread each. Words go round, so that a sender runs ahead of its reader.
template <typename Gpu>
WAYWISER_DEVICE LitmusWords litmus_words(const BodyRanks<Gpu>& body, std::uint64_t turn, std::uint64_t value) {
  const std::uint64_t slot = turn % 64;
  return {body.template at<std::uint64_t>((1 << 15) + slot * 256),
          body.template at<std::uint64_t>((1 << 16) + slot * 320), value};
}

// send(words) at rank 0, read(words, seen) at rank 1 until the first value has come; then the second one must be there.
template <typename Gpu, typename Send, typename Read>
WAYWISER_DEVICE void litmus_pipeline(const BodyRanks<Gpu>& body, Send send, Read read) {
  if (!body.leads() || body.rank() > 1) return;
  const auto& ranks = body.ranks;
  auto* done = body.template at<std::uint64_t>(4096);
  for (std::uint64_t turn = 0; turn < body.terms.turns; ++turn) {
    const LitmusWords words = litmus_words(body, turn, turn / 64 + 1);
    if (body.rank() == 0) {
      if (turn % 16 == 0 && turn >= 32) ranks.wait_until(done, Comparison::ge, turn - 32, 1);
      send(words);
      continue;
    }
    LitmusSeen seen;
    ranks.wait(
        [&] {
          read(words, seen);
          return seen.values[0] == words.turn;
        },
        [&] { ranks.stop_late(words.y, Comparison::eq, words.turn, seen.values[0], 0); });
    body.need(seen.values[1], words.turn, turn);
    if (turn % 16 != 15) continue;
    ranks.fence();
    ranks.signal_set(done, turn + 1, 0);
  }
}

struct MessagePassing {
  template <typename Gpu>
  WAYWISER_DEVICE static void run(const BodyRanks<Gpu>& body) {
    litmus_pipeline(
        body, [&](const LitmusWords& words) { pass_message(body.ranks, words); },
        [&](const LitmusWords& words, LitmusSeen& seen) { test_and_read(body.ranks, words, seen); });
  }
};

template <SignalOp op>
struct SignalAfterPut {
  template <typename Gpu>
  WAYWISER_DEVICE static void run(const BodyRanks<Gpu>& body) {
    litmus_pipeline(
        body, [&](const LitmusWords& words) { put_and_signal(body.ranks, words, op); },
        [&](const LitmusWords& words, LitmusSeen& seen) { test_and_read(body.ranks, words, seen); });
  }
};

struct PutPut {
  template <typename Gpu>
  WAYWISER_DEVICE static void run(const BodyRanks<Gpu>& body) {
    litmus_pipeline(
        body, [&](const LitmusWords& words) { put_twice(body.ranks, words); },
        [&](const LitmusWords& words, LitmusSeen& seen) { read_twice(body.ranks, words, seen); });
  }
};

// act(words, seen) at both ranks at about the same time. What both have seen must not be `forbidden`, the value of the
// turn or an older one.
template <typename Gpu, typename Act>
WAYWISER_DEVICE void litmus_together(const BodyRanks<Gpu>& body, bool new_is_forbidden, Act act) {
  const auto& ranks = body.ranks;
  auto *met = body.template at<std::uint64_t>(4096), *all_seen = body.template at<std::uint64_t>(1 << 20);
  const std::uint64_t turns = body.terms.turns;
  if (body.leads() && body.rank() < 2)
    for (std::uint64_t turn = 1; turn <= turns; ++turn) {
      const int rank = body.rank();
      const LitmusWords words = litmus_words(body, turn, turn);
      ranks.signal_set(met, turn, 1 - rank);
      ranks.wait_until(met, Comparison::ge, turn, 1 - rank);
      for (std::uint64_t i = 0; i < turn * (rank == 0 ? 3 : 7) % 16; ++i)
        static_cast<void>(ranks.gpu().nanoseconds());  // one is later, in turn
      std::uint64_t seen = 0;
      act(words, seen);
      all_seen[turn - 1] = seen;
    }
  body.barrier();
  if (body.rank() == 0)
    body.template each<Scope::block>(turns, [&](std::uint64_t i) {
      const bool mine = all_seen[i] == i + 1, theirs = ranks.g(all_seen + i, 1) == i + 1;
      body.need(mine == new_is_forbidden && theirs == new_is_forbidden, false, i);
    });
  body.barrier();
}

struct StoreBuffering {
  template <typename Gpu>
  WAYWISER_DEVICE static void run(const BodyRanks<Gpu>& body) {
    litmus_together(body, false,
                    [&](const LitmusWords& words, std::uint64_t& seen) { store_and_load(body.ranks, words, seen); });
  }
};

struct LoadBuffering {
  template <typename Gpu>
  WAYWISER_DEVICE static void run(const BodyRanks<Gpu>& body) {
    litmus_together(body, true,
                    [&](const LitmusWords& words, std::uint64_t& seen) { load_and_store(body.ranks, words, seen); });
  }
};

// The same of blocks: all that the threads of one put is there when the other block has its signal, its packets, or has
// left the barrier.
struct BlocksOrder {
  template <typename Gpu>
  WAYWISER_DEVICE static void run(const BodyRanks<Gpu>& body) {
    const auto& ranks = body.ranks;
    constexpr std::uint64_t count = 600;
    auto *signal = body.template at<std::uint64_t>(4096), *given = body.template at<std::uint64_t>(8192);
    auto *taken = body.template at<std::uint64_t>(1 << 16), *unpacked = body.template at<std::uint64_t>(1 << 17);
    auto* there = body.template at<std::uint64_t>(1 << 18);
    auto* packets = body.template at<block::LlPacket>(1 << 19);
    const auto both = [&](const std::uint64_t* numbers, std::uint64_t turn) {
      body.template each<Scope::block>(count, [&](std::uint64_t i) { body.need(numbers[i], turn * 1000 + i, turn); });
    };
    for (std::uint64_t turn = 1; turn <= body.terms.turns / 10; ++turn) {
      body.template each<Scope::block>(count, [&](std::uint64_t i) { given[i] = turn * 1000 + i; });
      ranks.template put_with_signal<Scope::block>(taken, given, count, signal, turn, SignalOp::set, body.right());
      put_packets<Scope::block>(ranks, packets, given, count, turn, body.right());
      wait_packets<Scope::block>(ranks, unpacked, packets, count, turn, body.left());
      both(unpacked, turn);
      ranks.template wait_until<Scope::block>(signal, Comparison::eq, turn, body.left());
      both(taken, turn);
      ranks.template put<Scope::block>(there, given, count, body.right());
      body.barrier();
      both(there, turn);
      body.barrier();
    }
  }
};

// Nobody changes the word of rank 0.
struct NobodySignals {
  template <typename Gpu>
  WAYWISER_DEVICE static void run(const BodyRanks<Gpu>& body) {
    auto* word = body.template at<std::uint64_t>(4096);
    if (body.leads()) *word = 3;
    if (body.rank() == 0) body.ranks.template wait_until<Scope::block>(word, Comparison::ge, 4, 1);
  }
};

// f(name, body) for all that need not stop.
template <typename Function>
void each_body(Function f) {
  f("puts with signals", PutsWithSignals{});
  f("puts and gets", PutsAndGets{});
  f("atomics", Atomics{});
  f("waits", Waits{});
  f("a team", TeamCalls{});
  f("packets", PacketCalls{});
  f("opened memory", OpenedMemory{});
  f("message passing", MessagePassing{});
  f("signal after put", SignalAfterPut<SignalOp::set>{});
  f("added signal after put", SignalAfterPut<SignalOp::add>{});
  f("put, put", PutPut{});
  f("store buffering", StoreBuffering{});
  f("load buffering", LoadBuffering{});
  f("blocks", BlocksOrder{});
}

}  // namespace waywiser::one_sided
