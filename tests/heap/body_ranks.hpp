#pragma once

// What a kernel's body has: its rank's view of the ranks, and where it says what is wrong.
#include "waywiser/heap/device/one_sided.hpp"
#include "waywiser/heap/device/team.hpp"

namespace waywiser::one_sided {

// Two warps and a half; on a host all threads run in turn, so there are fewer. At least 30.
constexpr unsigned body_threads = 80, body_threads_of_host = 33;
constexpr std::uint64_t body_bytes = 4 << 20;

// What a kernel finds first that is not as it should be; at the beginning of its rank's memory.
struct Verdict {
  std::uint32_t line = 0;  // of the body's file
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

}  // namespace waywiser::one_sided
