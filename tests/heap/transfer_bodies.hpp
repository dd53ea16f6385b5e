#pragma once

// Puts, gets, packets, and memory that was there before the heap.
#include "tests/heap/body_ranks.hpp"
#include "waywiser/heap/device/packets.hpp"

namespace waywiser::one_sided {

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

}  // namespace waywiser::one_sided
