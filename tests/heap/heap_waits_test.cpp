// Every wait of a heap while a rank dies: its own deadline is far away.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "tests/heap/heap_ranks.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/heap/device/messages.hpp"

namespace waywiser {
namespace {

using one_sided::Comparison, one_sided::Inbox, one_sided::Scope;

struct Wait {
  const char* name;
  std::function<void(Group&, Heap&)> body;
};
void PrintTo(const Wait& wait, std::ostream* stream) { *stream << wait.name; }

// In the order of the calls of the host.
template <typename Call>
void on_stream(Group& group, Heap& heap, Call call) {
  const bool on_gpu = heap.local().place.is_gpu();
  const std::shared_ptr<Platform> platform = on_gpu ? group.platform() : std::shared_ptr(open_host_platform());
  const auto stream = platform->open_stream(heap.local().place);
  call(*stream);
  heap.synchronize(*stream);
}

template <typename Body>
std::function<void(Group&, Heap&)> kernel(Body body) {
  return [body](Group& group, Heap& heap) { run_kernel(group, heap, body); };
}

// A message of so many bytes, which rank 1 would put.
std::function<void(Group&, Heap&)> message(std::uint64_t bytes) {
  return kernel([bytes](const HostOneSided& part) {
    one_sided::wait_message<Scope::block>(part, Inbox{0, bytes}, part.at<std::byte>(1 << 19), bytes, 1, 1);
  });
}

const Wait waits[] = {
    {"wait", [](Group& g, Heap& h) { on_stream(g, h, [&](Stream& s) { h.wait(s, 0, Comparison::eq, 1, 1); }); }},
    {"take", [](Group& g, Heap& h) { on_stream(g, h, [&](Stream& s) { h.wait_and_take(s, 0, 1, 1); }); }},
    {"until", kernel([](const HostOneSided& part) {
       part.wait_until<Scope::block>(part.at<std::uint64_t>(0), Comparison::eq, 1, 1);
     })},
    {"any", kernel([](const HostOneSided& part) {
       static_cast<void>(part.wait_until_any(part.at<std::uint64_t>(0), 4, nullptr, Comparison::eq, 1));
     })},
    {"packets", message(64)},
    {"lines", message(2048)},
    {"stores", message(1 << 17)},
    {"group", [](Group& g, Heap& h) {
       if (!h.local().place.is_gpu())
         return run_kernel(
             g, h, [](const HostOneSided& part) { part.wait_until(part.at<std::uint64_t>(0), Comparison::eq, 1, 1); });
       const auto stream = g.platform()->open_stream(h.local().place);
       h.wait(*stream, 0, Comparison::eq, 1, 1);
       g.synchronize(*stream);
     }}};

class HeapWaits : public testing::TestWithParam<Wait> {};

// Faults: gpus D
TEST_P(HeapWaits, NameARankThatHasDied) {
  for (const bool on_gpu : {false, true}) {
    TestRanks ranks(3);
    ranks.timeout = 300;
    ranks.virtual_gpus = on_gpu ? 3 : 0;
    const auto problems = ranks.in_processes([&](Group& group) {
      Heap heap(group, "dead", on_gpu ? gpu(group.rank()) : host(0), 1 << 20);
      group.barrier();
      if (group.rank() == 1) ::kill(::getpid(), SIGKILL);
      GetParam().body(group, heap);
    });
    ASSERT_EQ(problems.size(), 3U);
    for (const int rank : {0, 2}) {
      const std::string& said = problems[static_cast<std::size_t>(rank)];
      EXPECT_NE(said.find("rank 1 (process "), std::string::npos) << said;
      EXPECT_NE(said.find("is gone"), std::string::npos) << said;
    }
  }
}

// The word has come already: no wait, but the group has failed.
TEST(HeapsOfFailedGroups, LaterCallsNameItToo) {
  TestRanks ranks(2);
  ranks.timeout = 300;
  const auto problems = ranks.in_processes([&](Group& group) {
    Heap heap(group, "dead", host(0), 4096);
    group.barrier();
    if (group.rank() == 1) ::kill(::getpid(), SIGKILL);
    try {
      group.barrier();
    } catch (const Error&) {
    }
    heap.check();
  });
  ASSERT_EQ(problems.size(), 2U);
  EXPECT_NE(problems[0].find("rank 1 (process "), std::string::npos) << problems[0];
}

// Teams wait in their barriers.
TEST(HeapsOfFailedGroups, ATeamNamesARankThatHasDied) {
  for (const bool on_gpu : {false, true}) {
    TestRanks ranks(2);
    ranks.timeout = 300;
    ranks.virtual_gpus = on_gpu ? 2 : 0;
    const auto problems = ranks.in_processes([&](Group& group) {
      Heap heap(group, "dead", on_gpu ? gpu(group.rank()) : host(0), 4096);
      const HeapTeam team = heap.world();
      if (group.rank() == 1) ::kill(::getpid(), SIGKILL);
      on_stream(group, heap, [&](Stream& stream) { heap.barrier(stream, team); });
    });
    ASSERT_EQ(problems.size(), 2U);
    EXPECT_NE(problems[0].find("rank 1 (process "), std::string::npos) << problems[0];
  }
}

INSTANTIATE_TEST_SUITE_P(All, HeapWaits, testing::ValuesIn(waits),
                         [](const auto& wait) { return std::string(wait.param.name); });

}  // namespace
}  // namespace waywiser
