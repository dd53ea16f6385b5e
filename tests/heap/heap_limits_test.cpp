// What a heap refuses, what stops a kernel on it, and memory that it reaches by other ways.
#include <gtest/gtest.h>

#include <cstring>
#include <span>

#include "tests/base/error_of.hpp"
#include "tests/heap/heap_ranks.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/heap/heap.hpp"

namespace waywiser {
namespace {

using one_sided::Comparison, one_sided::Scope;

std::string first_problem(int size, const std::function<void(Group&, Place)>& body, bool on_gpu) {
  TestRanks ranks(size);
  ranks.virtual_gpus = on_gpu ? size : 0;
  for (const std::string& problem :
       ranks.in_processes([&](Group& group) { body(group, on_gpu ? gpu(group.rank()) : host(0)); }))
    if (!problem.empty()) return problem;
  return "";
}

// Faults: gpus N
TEST(Heap, AWaitThatNobodyEndsIsAnErrorWithRankSignalAndValue) {
  for (const bool on_gpu : {false, true}) {
    const std::string problem = first_problem(
        2,
        [](Group& group, Place place) {
          Heap heap(group, "late", place, 4096);
          heap.set_deadline(0.05);
          if (group.rank() == 0)
            run_kernel(group, heap, [](const HostOneSided& ranks) {
              ranks.at<std::uint64_t>(24)[0] = 3;
              ranks.wait_until<Scope::block>(ranks.at<std::uint64_t>(24), Comparison::ge, 4, 1);
            });
        },
        on_gpu);
    EXPECT_NE(problem.find("rank 0, heap 'late': rank 1 did not change the word at offset 24 within 50.0 ms: it is 3, "
                           "and a kernel waits for >= 4"),
              std::string::npos)
        << problem;
  }
}

TEST(Heap, AnAccessOutsideStopsTheKernel) {
  const std::vector<std::pair<std::function<void(const HostOneSided&)>, std::string>> wrong = {
      {[](const HostOneSided& ranks) { ranks.p(ranks.at<std::uint64_t>(96), std::uint64_t{1}, 0); },
       "rank 0, heap 'small': a kernel accesses 8 bytes at offset 96 of rank 0, which has 100"},
      {[](const HostOneSided& ranks) { ranks.put(ranks.at<int>(4), ranks.at<int>(0), 25, 0); },
       "a kernel accesses 100 bytes at offset 4 of rank 0, which has 100"},
      {[](const HostOneSided& ranks) { ranks.put(ranks.at<int>(0), ranks.at<int>(0), ~std::uint64_t{0} / 4, 0); },
       ", which has 100"},
      {[](const HostOneSided& ranks) { ranks.g(ranks.at<int>(0) - 1, 0); }, "at offset -4 of rank 0"},
      {[](const HostOneSided& ranks) { ranks.g(ranks.at<int>(0), 1); }, "a kernel names rank 1 of 1"}};
  const auto problems = TestRanks(1).in_threads([&](Group& group) {
    for (const auto& [kernel, text] : wrong) {
      const std::string said = error_of([&] { run_kernel(group, Heap(group, "small", host(0), 100), kernel); });
      EXPECT_NE(said.find(text), std::string::npos) << said;
    }
  });
  EXPECT_EQ(problems, no_problems);
  const std::string on_gpu = first_problem(
      1, [&](Group& group, Place place) { run_kernel(group, Heap(group, "small", place, 100), wrong[0].first); }, true);
  EXPECT_NE(on_gpu.find(wrong[0].second), std::string::npos) << on_gpu;
}

TEST(Heap, WhatDiffersBetweenRanksIsRefusedAtAllRanks) {
  const auto refused = [](const std::function<void(Group&)>& body, const std::string& text) {
    TestRanks ranks(2);
    ranks.virtual_gpus = 2;
    for (const std::string& problem : ranks.in_processes(body))
      EXPECT_NE(problem.find(text), std::string::npos) << problem;
  };
  refused([](Group& group) { Heap(group, group.rank() == 0 ? "a" : "b", host(0), 64); },
          "heap: rank 1 allocates 64 bytes on the host as 'b', rank 0 64 bytes on the host as 'a'");
  refused([](Group& group) { Heap(group, "a", group.rank() == 0 ? host(0) : gpu(1), 64); }, "on a GPU as 'a'");
  refused([](Group& group) { Heap(group, "a", host(0), group.rank() == 0 ? 64 : 65); }, "65 bytes");
  refused([](Group& group) { Heap(group, group.rank() == 0 ? "a" : "", host(0), 64); },
          "rank 1: heap: a name has 1 to 63 characters");
  refused([](Group& group) { Heap(group, "a", gpu(group.rank()), group.rank() == 0 ? Bytes{1} << 40 : 64); },
          "rank 0: ");
}

// GPUs 0 and 1 do not reach each other.
TEST(Heap, WhereStoresDoNotReachTheReasonIsToldAndTheProxyCarries) {
  TestRanks ranks(3);
  ranks.virtual_gpus = 3;
  ranks.no_peer_access = {{"", "no peer access: made up", ""}, {"no peer access: made up", "", ""}, {"", "", ""}};
  const auto problems = ranks.in_processes([](Group& group) {
    Heap heap(group, "parts", gpu(group.rank()), 64);
    for (int other = 0; other < 3; ++other) {
      const bool reached = other == group.rank() || other == 2 || group.rank() == 2;
      require_that(heap.why_proxied(other).empty() == reached, "what is reached");
      if (reached) {
        require_that(heap.peer(other).bytes == 64, "a peer");
        continue;
      }
      require_that(heap.why_proxied(other).find("made up") != std::string::npos, heap.why_proxied(other));
      EXPECT_THROW(heap.peer(other), Error);
    }
    const HeapTeam all = heap.world();
    std::string wrong;
    run_kernel(group, heap, [&](const HostOneSided& reached) {
      const one_sided::Team<one_sided::HostHeapBlock> team(reached, all.terms());
      for (int other = 0; other < 3; ++other)
        reached.p(reached.at<int>(0) + reached.rank(), 10 + reached.rank(), other);
      team.barrier();
      for (int other = 0; other < 3; ++other)
        if (reached.g(reached.at<int>(0) + other, reached.rank()) != 10 + other) wrong = "what was put";
      team.barrier();
    });
    require_that(wrong.empty(), wrong);
    group.barrier();
  });
  EXPECT_EQ(problems, no_problems);
}

// Memory that was there before, of one rank only, by a ticket in a message.
TEST(Heap, RegisteredMemoryIsReachedByItsTicket) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    Heap heap(group, "tickets", gpu(group.rank()), 4096);
    HeapTicket ticket;
    const std::span<std::byte> bytes(ticket.data);
    if (group.rank() == 0) {
      const Memory mine = group.platform()->allocate(gpu(0), 4096, Allocation::gpu);
      ticket = heap.share(mine.region().slice(40, 80));
      group.send(ConstElements(ConstRegion{bytes.data(), bytes.size(), host(0)}, DataType::uint8), 1);
      group.barrier();
      const auto stream = group.platform()->open_stream(gpu(0));
      int sum = 0;
      stream->launch({1,
                      1,
                      [&sum, data = stream->reach(mine.region())](const ThreadContext&) {
                        for (int i = 0; i < 20; ++i) sum += reinterpret_cast<const int*>(data + 40)[i];
                      },
                      {}});
      stream->synchronize(Deadline::in(20));
      require_that(sum == 190, "what rank 1 has put");
    } else {
      group.recv(Elements(Region{bytes.data(), bytes.size(), host(0)}, DataType::uint8), 0);
      const Region theirs = heap.open(ticket);
      require_that(theirs.bytes == 80, "its size");
      const auto stream = group.platform()->open_stream(gpu(1));
      auto* there = reinterpret_cast<int*>(stream->reach(theirs));
      run_kernel(group, heap, [there](const HostOneSided& part) {
        int numbers[20];
        for (int i = 0; i < 20; ++i) numbers[i] = i;
        part.put(there, numbers, 20, one_sided::opened);
        part.quiet();
      });
      group.barrier();
      EXPECT_THROW(heap.open(HeapTicket()), Error);
    }
    group.barrier();
  }),
            no_problems);
}

}  // namespace
}  // namespace waywiser
