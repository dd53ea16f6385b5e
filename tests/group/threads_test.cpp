// Threads of a program that call at once: refused, or let in where they share the rank.
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "tests/comm/test_ranks.hpp"
#include "tests/group/in_call.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/halo/grid.hpp"
#include "waywiser/halo/halo_exchange.hpp"
#include "waywiser/heap/heap.hpp"

namespace waywiser {
namespace {

using NamedCalls = std::vector<std::pair<std::string, std::function<void()>>>;

std::string problem_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Rank 0 receives in a thread of its own what rank 1 sends when `meanwhile` is over.
void while_a_thread_receives(Group& group, Group& receives, const std::function<void()>& meanwhile,
                             std::promise<void>& over) {
  if (group.rank() == 1) {
    over.get_future().wait();
    const int seven = 7;
    receives.send(std::span(&seven, 1), 0, 3);
    return;
  }
  int got = 0;
  std::string problem;
  std::thread receiver([&] { problem = problem_of([&] { receives.recv(std::span(&got, 1), 1, 3); }); });
  const std::string said = problem_of([&] {
    wait_until_in(group, CallKind::recv);
    meanwhile();
  });
  over.set_value();
  receiver.join();
  require_that(said.empty(), said);
  require_that(problem.empty() && got == 7, "the message of the call that was met: " + problem);
}

void require_refused(const NamedCalls& calls, const std::string& words) {
  for (const auto& [name, call] : calls) {
    try {
      call();
    } catch (const Error& error) {
      require_that(
          error.kind() == ErrorKind::invalid_input && std::string(error.what()).find(words) != std::string::npos,
          name + ", not: " + error.what());
      continue;
    }
    require_that(false, name + " is refused");
  }
}

// Both ranks make the same calls afterwards, with the numbers that they had.
void require_sums(Group& group) {
  for (int i = 0; i < 3; ++i) {
    const double mine = group.rank() + i;
    double sum = 0;
    group.all_reduce(std::span(&mine, 1), std::span(&sum, 1));
    require_that(sum == 1 + 2 * i, "the sum");
  }
}

struct Arrays {
  explicit Arrays(std::size_t ranks) : one(1), all(ranks), counts(ranks, 1) {}
  std::vector<double> one, all;
  std::vector<std::size_t> counts;
  ConstElements give() const { return std::span(one); }
  ConstElements give_all() const { return std::span(all); }
  Elements take() { return std::span(one); }
  Elements take_all() { return std::span(all); }
};

NamedCalls calls_of(Group& group, Arrays& with) {
  const auto op = ReduceOp::sum;
  return {
      {"send", [&] { group.send(with.give(), 1); }},
      {"send, begin", [&] { static_cast<void>(group.send(with.give(), 1, 0, Mode::begin)); }},
      {"recv", [&] { group.recv(with.take(), 1); }},
      {"recv, begin", [&] { static_cast<void>(group.recv(with.take(), 1, 0, Mode::begin)); }},
      {"recv any", [&] { group.recv(with.take(), any_source, any_tag); }},
      {"probe", [&] { group.probe(1, 0, 0); }},
      {"sendrecv", [&] { group.sendrecv(with.give(), 1, with.take(), 1); }},
      {"neighbor_exchange", [&] { group.neighbor_exchange({}); }},
      {"barrier", [&] { group.barrier(); }},
      {"broadcast", [&] { group.broadcast(with.take(), 0); }},
      {"reduce", [&] { group.reduce(with.give(), with.take(), op, 0); }},
      {"all_reduce", [&] { group.all_reduce(with.give(), with.take()); }},
      {"all_reduce, begin", [&] { static_cast<void>(group.all_reduce(with.give(), with.take(), op, Mode::begin)); }},
      {"reduce_scatter", [&] { group.reduce_scatter(with.give_all(), with.take()); }},
      {"all_gather", [&] { group.all_gather(with.give(), with.take_all()); }},
      {"all_to_all", [&] { group.all_to_all(with.give_all(), with.take_all()); }},
      {"gather", [&] { group.gather(with.give(), with.take_all(), 0); }},
      {"scatter", [&] { group.scatter(with.give_all(), with.take(), 0); }},
      {"all_gather_v", [&] { group.all_gather_v(with.give(), with.take_all(), with.counts); }},
      {"all_to_all_v", [&] { group.all_to_all_v(with.give_all(), with.counts, with.take_all(), with.counts); }},
      {"gather_v", [&] { group.gather_v(with.give(), with.take_all(), with.counts, 0); }},
      {"scatter_v", [&] { group.scatter_v(with.give_all(), with.counts, with.take(), 0); }},
      {"prepare_exchange", [&] { group.prepare_exchange({}); }},
      {"expose", [&] { group.expose({}); }},
      {"flush", [&] { group.flush(); }},
      {"split", [&] { group.split(0); }},
      {"set_algorithm", [&] { group.set_algorithm(""); }},
      {"why_staged", [&] { static_cast<void>(group.why_staged()); }},
      {"why_staged of", [&] { static_cast<void>(group.why_staged(1)); }},
      {"encrypted_by", [&] { static_cast<void>(group.encrypted_by(1)); }},
      {"authenticated", [&] { static_cast<void>(authenticated(group)); }},
      {"a heap", [&] { const Heap heap(group, "other", host(0), 8); }},
  };
}

TEST(Threads, ACallThatMeetsAnotherIsRefusedAndTheOtherGoesOn) {
  TestRanks ranks(2);
  std::promise<void> over;
  EXPECT_EQ(ranks.in_threads([&](Group& group) {
    Arrays with(2);
    std::optional<Group> part = group.split(0);
    while_a_thread_receives(
        group, *part,
        [&] {
          NamedCalls calls = calls_of(group, with);
          calls.emplace_back("set_timeout", [&] { group.set_timeout(1); });
          calls.emplace_back("close", [&] { group.close(); });
          require_refused(calls, "rank 0: another thread is in recv #1");
          require_refused(calls_of(*part, with), "rank 0: another thread is in recv #1");
        },
        over);
    require_sums(group);
    require_sums(*part);
  }),
            no_problems);
}

struct Objects {
  explicit Objects(Group& group)
      : window(group.expose({reinterpret_cast<std::byte*>(memory.data()), sizeof memory, host(0)})),
        prepared(group.prepare_exchange({})),
        heap(group, "heap", host(0), 64),
        team(heap.world()),
        halo(group, grid_partition(even_grid({4, 4}, {1, 1}, {true, true}, std::array{2, 1}), group.rank()), fields()) {
  }
  std::array<HaloArray, 1> fields() { return {HaloArray{std::span(field)}}; }
  NamedCalls calls() {
    const Region bytes{reinterpret_cast<std::byte*>(one.data()), 8, host(0)};
    return {
        {"window put", [this, bytes] { window.put(bytes, 1, 0); }},
        {"window get", [this, bytes] { window.get(bytes, 1, 0); }},
        {"window signal", [this] { window.signal(1, 0, 1); }},
        {"window wait", [this] { window.wait(0, 0); }},
        {"prepared start", [this] { prepared.start(); }},
        {"prepared wait", [this] { prepared.wait(); }},
        {"prepared keep", [this] { prepared.keep({}); }},
        {"heap put", [this, bytes] { heap.put(*stream, bytes, 1, 0); }},
        {"heap get", [this, bytes] { heap.get(*stream, bytes, 1, 0); }},
        {"heap signal", [this] { heap.signal(*stream, 1, 0, 1); }},
        {"heap wait", [this] { heap.wait(*stream, 0, one_sided::Comparison::ge, 0); }},
        {"heap wait_and_take", [this] { heap.wait_and_take(*stream, 0, 0); }},
        {"heap barrier", [this] { heap.barrier(*stream, team); }},
        {"heap broadcast", [this] { heap.broadcast(*stream, team, 0, 0, 8, 0); }},
        {"heap all_gather", [this] { heap.all_gather(*stream, team, 8, 0, 8); }},
        {"heap all_to_all", [this] { heap.all_to_all(*stream, team, 16, 0, 8); }},
        {"heap reduce", [this] { heap.reduce(*stream, team, 0, 0, 1, DataType::float64, one_sided::TeamOp::sum); }},
        {"heap synchronize", [this] { heap.synchronize(*stream); }},
        {"heap split", [this] { heap.split(0); }},
        {"heap set_deadline", [this] { heap.set_deadline(1); }},
        {"halo start", [this] { halo.start(); }},
        {"halo finish", [this] { halo.finish(); }},
        {"halo exchange", [this] { halo.exchange(); }},
        {"halo set_fields", [this] { halo.set_fields(fields()); }},
        {"halo use", [this] { halo.use(HaloVariant::packed); }},
        {"halo tune", [this] { halo.tune(1); }},
        {"halo explain", [this] { static_cast<void>(halo.explain()); }},
        {"halo counts", [this] { static_cast<void>(halo.counts()); }},
        {"halo keep", [this] { halo.keep({}); }},
    };
  }

  std::array<std::uint64_t, 4> memory{};
  std::vector<double> one = {0}, field = std::vector<double>(4 * 6);
  std::unique_ptr<Stream> stream = open_host_platform()->open_stream(host(0));
  Window window;
  Prepared prepared;
  Heap heap;
  HeapTeam team;
  HaloExchange halo;
};

TEST(Threads, WhatIsMadeOfAGroupIsRefusedToo) {
  TestRanks ranks(2);
  std::promise<void> over;
  EXPECT_EQ(ranks.in_threads([&](Group& group) {
    Objects objects(group);
    int first = 0, second = 0;
    Future receiving = group.recv(std::span(&first, 1), 1 - group.rank(), 9, Mode::begin);
    while_a_thread_receives(
        group, group,
        [&] {
          NamedCalls calls = objects.calls();
          calls.emplace_back("future done", [&] { receiving.done(); });
          calls.emplace_back("future wait", [&] { receiving.wait(); });
          calls.emplace_back("future keep", [&] { receiving.keep({}); });
          require_refused(calls, "rank 0: another thread is in recv");
        },
        over);
    group.send(std::span<const int>(&second, 1), 1 - group.rank(), 9);
    receiving.wait();
    objects.halo.exchange();
    require_sums(group);
  }),
            no_problems);
}

TEST(Threads, MayCallOneAfterTheOther) {
  for (const bool progress_thread : {false, true}) {
    TestRanks ranks(2);
    ranks.progress_thread = progress_thread;
    EXPECT_EQ(ranks.in_threads([](Group& group) {
      for (int turn = 0; turn < 20; ++turn) {
        std::string problem;
        std::thread([&] { problem = problem_of([&] { require_sums(group); }); }).join();
        require_that(problem.empty(), problem);
        require_sums(group);
      }
    }),
              no_problems);
  }
}

// As the garbage collector of a language does in any thread.
TEST(Threads, ADestructorWaitsForTheOtherThreadAndDoesNoHarm) {
  for (const bool threads : {false, true}) {
    TestRanks ranks(2);
    ranks.threads = threads;
    std::promise<void> over;
    EXPECT_EQ(ranks.in_threads([&](Group& group) {
      std::optional<Group> part = group.split(0), other = group.split(0);
      auto objects = std::make_unique<Objects>(*other);
      auto memory = std::make_shared<std::vector<double>>(1 << 16);
      std::optional<Future> future = other->recv(std::span(*memory), 1 - group.rank(), 1, Mode::begin);
      future->keep(memory);
      while_a_thread_receives(
          group, *part,
          [&] {
            future.reset();
            require_that(memory.use_count() == 2, "that the operation keeps its memory");
            objects.reset();
          },
          over);
      const std::vector<double> ones(1 << 16, 1);
      other->send(std::span(ones), 1 - group.rank(), 1);
      if (future) future->wait();
      group.barrier();
      require_sums(*part);
    }),
              no_problems)
        << threads;
  }
}

TEST(Threads, EachMayJoinByItself) {
  TestRanks ranks(2);
  EXPECT_EQ(ranks.in_processes([&](Group& first) {
    Group second = Group::join(ranks.options(first.rank()));
    std::string problem;
    std::thread other([&] {
      problem = problem_of([&] {
        for (int turn = 0; turn < 100; ++turn) require_sums(second);
      });
    });
    for (int turn = 0; turn < 100; ++turn) require_sums(first);
    other.join();
    require_that(problem.empty(), problem);
  }),
            no_problems);
}

}  // namespace
}  // namespace waywiser
