// Accesses to ranks that stores do not reach: two machines of hosts or of virtual GPUs, whose progress threads carry
// them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <fstream>

#include "tests/base/error_of.hpp"
#include "tests/heap/device_bodies.hpp"
#include "tests/heap/heap_ranks.hpp"
#include "tests/heap/host_bodies.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/heap/proxy/proxy_arrivals.hpp"

namespace waywiser {
namespace {

using namespace one_sided;

bool stands_still(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(status, text);
  const std::size_t end = text.rfind(')');
  return end != std::string::npos && text.size() > end + 2 && text[end + 2] == 'T';
}

void every_body(Group& group, Place place) {
  each_body([&](const char* name, auto body) { run_body(group, place, name, 10, 60, launch_on_host<decltype(body)>); });
}

TEST(HeapProxies, TwoRanksOnTwoMachinesMakeEveryCall) { EXPECT_EQ(problems_of(2, every_body, 60, 1), ""); }

// Of a machine with two ranks these reach each other; the ring goes over both kinds of neighbours.
TEST(HeapProxies, FourRanksOnTwoMachines) {
  TestRanks ranks(4);
  ranks.virtual_gpus = 2;
  ranks.machines_apart = true;
  ranks.ranks_of_machine = 2;
  ranks.timeout = 60;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    const Place place = gpu_of_rank(group);
    run_body(group, place, "a team of two machines", 10, 60, launch_on_host<TeamCalls>);
    run_body(group, place, "blocks of two machines", 10, 60, launch_on_host<BlocksOrder>);
    run_body(group, place, "waits of two machines", 10, 60, launch_on_host<Waits>);
  }),
            no_problems);
}

// One machine for each rank.
TestRanks& apart(TestRanks& ranks, int gpus) {
  ranks.machines_apart = true;
  ranks.virtual_gpus = gpus;
  return ranks;
}

TEST(HeapProxies, TheReasonIsOneLine) {
  EXPECT_EQ(problems_of(
                2,
                [](Group& group, Place place) {
                  const Heap heap(group, "far", place, 4096);
                  const int other = 1 - group.rank();
                  const std::string why = heap.why_proxied(other);
                  require_that(why.find("it is on another machine") == 0 && why.find('\n') == std::string::npos, why);
                  require_that(heap.why_proxied(group.rank()).empty(), "its own memory");
                  const std::string refused = error_of([&] { static_cast<void>(heap.peer(other)); });
                  require_that(refused.find(why) != std::string::npos, refused);
                  group.barrier();
                },
                20, 1),
            "");
}

// Calls of the host, on a stream and in its order.
TEST(HeapProxies, CallsOfTheHostGoThereToo) {
  EXPECT_EQ(problems_of(
                2,
                [](Group& group, Place place) {
                  const std::shared_ptr<Platform> platform =
                      place.is_gpu() ? group.platform() : std::shared_ptr<Platform>(open_host_platform());
                  Heap heap(group, "stream", place, 1 << 20);
                  const HeapTeam team = heap.world();
                  const auto stream = platform->open_stream(place);
                  const Bytes bytes = 100000;  // several pieces
                  const Memory given =
                      platform->allocate(place, bytes, place.is_gpu() ? Allocation::gpu : Allocation::pageable);
                  const Memory on_host = platform->allocate(host(0), bytes, Allocation::pinned);
                  const int other = 1 - group.rank();
                  for (std::uint64_t turn = 1; turn <= 5; ++turn) {
                    std::memset(on_host.region().data, static_cast<int>(turn) * 10 + group.rank(), bytes);
                    stream->copy(given.region().slice(0, bytes), on_host.region().slice(0, bytes));
                    heap.put(*stream, given.region().slice(0, bytes), other, 4096);
                    heap.signal(*stream, other, 0, turn);
                    heap.wait(*stream, 0, Comparison::ge, turn, other);
                    stream->copy(on_host.region().slice(0, bytes), heap.local().slice(4096, bytes));
                    heap.barrier(*stream, team);
                    heap.synchronize(*stream);
                    for (Bytes i = 0; i < bytes; ++i)
                      require_that(
                          on_host.region().data[i] == static_cast<std::byte>(turn * 10 + static_cast<unsigned>(other)),
                          "byte " + std::to_string(i) + " of turn " + std::to_string(turn));
                  }
                  require_that(error_of([&] {
                                 heap.put(*stream, given.region(), other, 1 << 20);
                               }).find("of 1048576") != std::string::npos,
                               "a put outside");
                  group.barrier();
                },
                20, 1),
            "");
}

// More ranks than kernels of collectives serve: 10, on two machines.
TEST(HeapProxies, TenRanksMeetAndExchange) {
  TestRanks ranks(10);
  ranks.machines_apart = true;
  ranks.ranks_of_machine = 5;
  ranks.timeout = 60;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    Heap heap(group, "ten", host(0), 65536);
    const HeapTeam team = heap.world();
    std::string wrong;
    run_kernel(group, heap, [&](const HostOneSided& part) {
      const Team<HostHeapBlock> all(part, team.terms());
      auto *mine = part.at<std::uint64_t>(0), *gathered = part.at<std::uint64_t>(1024);
      for (std::uint64_t i = 0; i < 7; ++i) mine[i] = 100 * static_cast<std::uint64_t>(part.rank()) + i;
      all.all_gather(gathered, mine, 7);
      for (std::uint64_t i = 0; i < 70; ++i)
        if (gathered[i] != 100 * (i / 7) + i % 7) wrong = "number " + std::to_string(i);
      all.barrier();
    });
    require_that(wrong.empty(), wrong);
    group.barrier();
  }),
            no_problems);
}

// Faults: gpus N
TEST(HeapProxies, AWaitThatNobodyEndsIsAnError) {
  TestRanks ranks(2);
  const auto problems = apart(ranks, 2).in_processes([](Group& group) {
    Heap heap(group, "late", gpu(group.rank()), 4096);
    heap.set_deadline(0.05);
    if (group.rank() == 0)
      run_kernel(group, heap, [](const HostOneSided& part) {
        part.wait_until<Scope::block>(part.at<std::uint64_t>(24), Comparison::ge, 4, 1);
      });
  });
  ASSERT_FALSE(problems.empty());
  EXPECT_NE(
      problems[0].find("rank 0, heap 'late': rank 1 did not change the word at offset 24 within 50.0 ms: it is 0"),
      std::string::npos)
      << problems[0];
}

// Rank 1 stands still: its progress thread answers nothing.
// Faults: gpus N
TEST(HeapProxies, AnAccessThatIsNotAnsweredInTimeIsAnError) {
  for (const bool on_gpu : {false, true}) {
    TestRanks ranks(2);
    const auto problems = apart(ranks, on_gpu ? 2 : 0).in_processes([&](Group& group) {
      Heap heap(group, "still", on_gpu ? gpu(group.rank()) : host(0), 4096);
      const auto processes = heap_gather(group, static_cast<std::int64_t>(::getpid()));
      if (group.rank() == 1) {
        ::raise(SIGSTOP);
        return;
      }
      const auto other = static_cast<pid_t>(processes[1]);
      while (!stands_still(other)) ::usleep(1000);
      heap.set_deadline(0.2);
      const std::string said = error_of(
          [&] { run_kernel(group, heap, [](const HostOneSided& part) { part.g(part.at<std::uint64_t>(64), 1); }); });
      ::kill(other, SIGKILL);
      throw Error(ErrorKind::timeout, said);
    });
    ASSERT_FALSE(problems.empty());
    EXPECT_NE(
        problems[0].find("rank 0, heap 'still': a kernel accesses 8 bytes at offset 64 of rank 1, which the proxy "
                         "has not carried out within 200 ms: stores do not reach it: it is on another machine"),
        std::string::npos)
        << problems[0];
  }
}

// A kernel that waits hears at once that a rank has died: its own deadline is far away.
// Faults: gpus D
TEST(HeapProxies, AKernelStopsWhenARankHasDied) {
  for (const bool on_gpu : {false, true}) {
    TestRanks ranks(2);
    ranks.timeout = 300;
    const auto problems = apart(ranks, on_gpu ? 2 : 0).in_processes([&](Group& group) {
      Heap heap(group, "dead", on_gpu ? gpu(group.rank()) : host(0), 4096);
      group.barrier();
      if (group.rank() == 1) ::kill(::getpid(), SIGKILL);
      run_kernel(group, heap, [](const HostOneSided& part) {
        part.wait_until<Scope::block>(part.at<std::uint64_t>(0), Comparison::eq, 1, 1);
      });
    });
    ASSERT_EQ(problems.size(), 2U);
    EXPECT_NE(problems[0].find("rank 0, heap 'dead': a kernel was stopped: "), std::string::npos) << problems[0];
    EXPECT_NE(problems[0].find("rank 1"), std::string::npos) << problems[0];
  }
}

// A rank whose ring was written by something else than the calls.
TEST(HeapProxies, WhatAnotherRankAsksForIsChecked) {
  using Change = void (*)(ProxyRequest&);
  const std::pair<Change, const char*> all[] = {
      {[](ProxyRequest& request) { request.offset = std::uint64_t{1} << 40; },
       "memory at offset 1099511627776, outside"},
      {[](ProxyRequest& request) { request.apart = ~std::uint64_t{0}; }, ", outside"},
      {[](ProxyRequest& request) {
         request.word = 4;
         request.op = WordOp::add;
       },
       "a word at offset 4"},
      {[](ProxyRequest& request) { request.op = static_cast<WordOp>(77); }, "an access that does not exist"},
      {[](ProxyRequest& request) {
         request.move = ProxyMove::packets;
         request.offset = 8;
       },
       "packets at an offset of 8"}};
  for (const auto& [change, why] : all) {
    TestRanks ranks(2);
    const auto problems = apart(ranks, 0).in_processes([change = change](Group& group) {
      Heap heap(group, "checked", host(0), 4096);
      if (group.rank() == 0)
        run_kernel(group, heap, [&](const HostOneSided& part) {
          ProxyRequest request;
          request.rank = 1;
          request.offset = 64;
          request.count = 8;
          change(request);
          const std::byte bytes[8] = {};
          put_by_proxy<Scope::thread, HostHeapBlock>({part.gpu(), part.terms()}, request, bytes, 1);
          part.quiet();
        });
      group.barrier();
    });
    ASSERT_EQ(problems.size(), 2U) << why;
    EXPECT_NE(problems[1].find("rank 0 asks for"), std::string::npos) << problems[1];
    EXPECT_NE(problems[1].find(why), std::string::npos) << problems[1];
  }
}

}  // namespace
}  // namespace waywiser
