// The error of a failed call has one kind at all ranks.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <stdexcept>
#include <vector>

#include "tests/comm/test_ranks.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/group/failure_at_all.hpp"
#include "waywiser/group/scans.hpp"

namespace waywiser {
namespace {

constexpr int ranks_here = 3, other_rank = 1;
constexpr std::size_t long_count = 60'000, short_count = 100;
using KindValues = std::vector<double>;
using RankCalls = std::function<void(Group& group, KindValues& in, KindValues& out)>;

// Each rank calls what it is given, and then what all call: a rank that needs nothing learns of the failure there.
// Returns the kinds.
Problems kinds_of(const RankCalls& call, std::size_t count, std::size_t count_of_other) {
  return TestRanks(ranks_here).in_processes([&](Group& group) {
    const std::size_t mine = group.rank() == other_rank ? count_of_other : count;
    KindValues in(mine), out(ranks_here * mine);
    std::string kind = "no error";
    try {
      call(group, in, out);
      group.barrier();
    } catch (const Error& error) {
      kind = name(error.kind());
    }
    throw std::runtime_error(kind);
  });
}

Problems all_are(ErrorKind kind) {
  Problems all;
  for (int rank = 0; rank < ranks_here; ++rank)
    all.push_back("rank " + std::to_string(rank) + ": " + std::string(name(kind)));
  return all;
}

struct CallOfAll {
  const char* name;
  RankCalls call;
};

std::span<double> first(KindValues& values, std::size_t count) { return std::span(values).first(count); }

std::vector<CallOfAll> collectives() {
  return {
      {"all_reduce",
       [](Group& g, KindValues& in, KindValues& out) { g.all_reduce(std::span(in), first(out, in.size())); }},
      {"reduce", [](Group& g, KindValues& in,
                    KindValues& out) { g.reduce(std::span(in), first(out, in.size()), ReduceOp::sum, 0); }},
      {"broadcast", [](Group& g, KindValues& in, KindValues&) { g.broadcast(std::span(in), 2); }},
      {"all_gather", [](Group& g, KindValues& in, KindValues& out) { g.all_gather(std::span(in), std::span(out)); }},
      {"gather",
       [](Group& g, KindValues& in, KindValues& out) {
         g.gather(std::span(in), g.rank() == 0 ? std::span(out) : std::span<double>(), 0);
       }},
      {"scatter",
       [](Group& g, KindValues& in, KindValues& out) {
         g.scatter(g.rank() == 0 ? std::span(out) : std::span<double>(), std::span(in), 0);
       }},
      {"reduce_scatter",
       [](Group& g, KindValues& in, KindValues& out) { g.reduce_scatter(std::span(out), std::span(in)); }},
      {"all_to_all",
       [](Group& g, KindValues&, KindValues& out) {
         KindValues taken(out.size());
         g.all_to_all(std::span(out), std::span(taken));
       }},
      {"scan", [](Group& g, KindValues& in, KindValues& out) { scan(g, std::span(in), first(out, in.size())); }},
      {"exscan", [](Group& g, KindValues& in,
                    KindValues& out) { exscan(g, std::span(in), first(out, g.rank() == 0 ? 0 : in.size())); }},
      {"a begun all_reduce",
       [](Group& g, KindValues& in, KindValues& out) {
         g.all_reduce(std::span(in), first(out, in.size()), ReduceOp::sum, Mode::begin).wait();
       }},
      {"neighbor_exchange",
       [](Group& g, KindValues& in, KindValues& out) {
         const int right = (g.rank() + 1) % ranks_here, left = (g.rank() + ranks_here - 1) % ranks_here;
         const std::array<Exchange, 2> around{{{right, std::span(in), {}}, {left, {}, first(out, in.size())}}};
         g.neighbor_exchange(around);
       }},
  };
}

TEST(SameKind, UnlikeLengthsAreInvalidInputAtAllRanks) {
  for (const auto& [name, call] : collectives())
    EXPECT_EQ(kinds_of(call, short_count, short_count / 2), all_are(ErrorKind::invalid_input)) << name;
  EXPECT_EQ(kinds_of(collectives().front().call, long_count, long_count / 2), all_are(ErrorKind::invalid_input));
}

TEST(SameKind, UnlikeCallsAreInvalidInputAtAllRanks) {
  const RankCalls splits = [](Group& group, KindValues& in, KindValues& out) {
    group.rank() == other_rank ? static_cast<void>(group.split(0)) : collectives().front().call(group, in, out);
  };
  EXPECT_EQ(kinds_of(splits, short_count, short_count), all_are(ErrorKind::invalid_input));
}

TEST(SameKind, ADeadlineIsATimeoutAtAllRanks) {
  const RankCalls nobody_sends = [](Group& group, KindValues& in, KindValues&) {
    if (group.rank() == other_rank) group.set_timeout(0.5);
    group.rank() == other_rank ? group.recv(std::span(in), 0).wait() : group.barrier().wait();
  };
  EXPECT_EQ(kinds_of(nobody_sends, short_count, short_count), all_are(ErrorKind::timeout));
}

// A rank ends by the error of all while others still wait for what they forward to each other.
TEST(SameKind, WhatOneFailsWithIsKnownToAllBeforeOneEndsByIt) {
  const RankCalls refused = [](Group& group, KindValues&, KindValues&) {
    try {
      throw_at_all(group, group.rank() == other_rank ? std::optional(Error(ErrorKind::invalid_input, "no such variant"))
                                                     : std::nullopt);
    } catch (const Error&) {
      group.abort("its program has ended");
      throw;
    }
  };
  for (int times = 0; times < 40; ++times)
    ASSERT_EQ(kinds_of(refused, short_count, short_count), all_are(ErrorKind::invalid_input)) << "time " << times;
}

TEST(SameKind, AnAbortIsIoAtAllRanks) {
  const RankCalls aborts = [](Group& group, KindValues&, KindValues&) {
    if (group.rank() == other_rank) group.abort("out of fuel");
  };
  EXPECT_EQ(kinds_of(aborts, short_count, short_count), all_are(ErrorKind::io));
}

}  // namespace
}  // namespace waywiser
