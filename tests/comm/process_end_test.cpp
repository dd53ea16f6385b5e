// A group that is still referenced when its process ends: no thread of it may run into OpenSSL's own end, which is an
// exit handler.
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/comm/test_ranks.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/base/timeout.hpp"

namespace waywiser {
namespace {

constexpr int others_run = 41;
std::size_t threads_at_first = 0;

// Without those of UCX and of CUDA's driver, which use no OpenSSL.
std::size_t threads() {
  std::size_t count = 0;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::ifstream(each.path() / "comm") >> name;
    if (name != "async" && !name.starts_with("cuda")) ++count;
  }
  return count;
}

// The thread sanitizer starts a thread of its own beside the first one of the program.
void count_first_threads() {
  threads_at_first = threads();
#ifdef __SANITIZE_THREAD__
  std::thread([] {}).join();
  ++threads_at_first;
#endif
}

// The kernel lists a joined thread a little longer.
bool only_first_threads() {
  for (const Deadline deadline = Deadline::in(5); threads() > threads_at_first; ::sched_yield())
    if (deadline.passed()) return false;
  return true;
}

// An exit handler that runs where OpenSSL's does: after all that are registered later.
void end_openssl() {
  if (!only_first_threads()) ::_exit(others_run);
}

void end_openssl_here() {
  count_first_threads();
  std::atexit(end_openssl);
}

TestRanks::Process program(const TestRanks& ranks, int rank, const std::function<void(Group& group)>& body,
                           int code = 0) {
  return ranks.start(rank, [&, body, code](int self) {
    end_openssl_here();
    static Group* const group = new Group(Group::join(ranks.options(self)));  // never destroyed
    body(*group);
    std::exit(code);
  });
}

std::vector<std::string> programs(const std::function<void(Group& group)>& body, int code = 0) {
  const TestRanks ranks(2);
  std::vector<TestRanks::Process> processes;
  for (int rank = 0; rank < 2; ++rank) processes.push_back(program(ranks, rank, body, code));
  std::vector<std::string> problems;
  for (const auto& process : processes) problems.push_back(TestRanks::wait(process));
  return problems;
}

using EachOf = std::vector<std::string>;

TEST(ProcessEnd, AClosedGroupHasNoThread) {
  EXPECT_EQ(programs([](Group& group) {
              require_that(threads() > threads_at_first, "the life-line has a thread");
              group.close();
              require_that(only_first_threads(), "close() ends it");
            }),
            EachOf(2));
}

TEST(ProcessEnd, AGroupThatWasNeverClosedHasNoThreadAtTheEnd) {
  EXPECT_EQ(programs([](Group& group) { group.barrier(); }), EachOf(2));
  EXPECT_EQ(programs([](Group& group) { group.barrier(); }, 3), EachOf(2, "exit 3"));
}

TEST(ProcessEnd, AGroupThatHasFailedHasNoThreadAtTheEnd) {
  for (const int code : {0, 3}) {
    const auto found = programs(
        [](Group& group) {
          if (group.rank() == 1) ::kill(::getpid(), SIGKILL);
          std::array<int, 1> word{};
          try {
            group.recv(std::span(word), 1);
          } catch (const Error&) {
            group.close();
          }
        },
        code);
    EXPECT_EQ(found, (EachOf{code == 0 ? "" : "exit 3", "signal 9"}));
  }
}

// The root answers who may still reach what memory, until all have let go.
TEST(ProcessEnd, RanksOfSeveralMachinesCloseWithOperationsUnderWay) {
  TestRanks ranks(3);
  ranks.machines_apart = true;
  for (int turn = 0; turn < 3; ++turn)
    EXPECT_EQ(ranks.in_processes([](Group& group) {
      std::array<int, 1000> data{};
      Future never = group.recv(std::span(data), (group.rank() + 1) % 3, 0, Mode::begin);
      group.close();
    }),
              no_problems);
}

// OpenSSL is used for the first time by the second group.
TEST(ProcessEnd, ALaterGroupOfAnAddressEndsBeforeOpenSsl) {
  const TestRanks ranks(2);
  std::array<int, 2> port{};
  ASSERT_EQ(::pipe(port.data()), 0);
  std::vector<TestRanks::Process> processes;
  for (int rank = 0; rank < 2; ++rank)
    processes.push_back(ranks.start(rank, [&](int self) {
      count_first_threads();
      {
        Group within(Group::join(ranks.options(self)));
        within.close();
      }
      std::atexit(end_openssl);
      JoinOptions options = ranks.options(self);
      std::uint16_t number = 0;
      if (self == 1 && ::read(port[0], &number, sizeof number) != sizeof number)
        throw Error(ErrorKind::io, "no port was told");
      options.launch->root = Endpoint{"127.0.0.1", number};
      options.launch->secret = "a secret of this test alone";
      options.announce = [&](const Endpoint& root) {
        static_cast<void>(!::write(port[1], &root.port, sizeof root.port));
      };
      static Group* const group = new Group(Group::join(options));
      group->barrier();
      std::exit(0);
    }));
  ::close(port[0]);
  ::close(port[1]);
  for (const auto& process : processes) EXPECT_EQ(TestRanks::wait(process), "");
}

}  // namespace
}  // namespace waywiser
