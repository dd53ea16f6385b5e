#pragma once

// Atomics and waits.
#include "tests/heap/body_ranks.hpp"

namespace waywiser::one_sided {

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

}  // namespace waywiser::one_sided
