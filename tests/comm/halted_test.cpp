// Ranks of one machine tell each other that they touch nobody's memory any more, also when rank 0 can pass nothing on.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>

#include "tests/comm/test_ranks.hpp"
#include "tests/comm/with_variable.hpp"
#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr Seconds longest_halt_case = 60;

// Set once, by one process for the others.
class SharedFlag {
 public:
  SharedFlag()
      : flag_(static_cast<std::atomic<bool>*>(
            ::mmap(nullptr, sizeof(bool), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  SharedFlag(const SharedFlag&) = delete;
  SharedFlag& operator=(const SharedFlag&) = delete;
  ~SharedFlag() { ::munmap(static_cast<void*>(flag_), sizeof(bool)); }

  void set() const { *flag_ = true; }
  void wait() const {
    for (const Deadline deadline = Deadline::in(longest_halt_case); !*flag_; ::usleep(500))
      require_that(!deadline.passed(), "the flag to be set");
  }

 private:
  std::atomic<bool>* flag_;
};

// UCX has told rank 2 where the bytes of rank 1 are; rank 2 computes, and rank 0 dies.
// Faults: host D
TEST(Halted, RanksTellEachOtherWhenRank0HasDied) {
  const WithVariable by_ucx("WAYWISER_MAILBOX", "short");
  const TestRanks ranks(3);
  const SharedFlag sender_has_ended;
  std::vector<TestRanks::Process> processes;
  for (int rank = 0; rank < 3; ++rank)
    processes.push_back(ranks.start(rank, [&](int self) {
      Group group = Group::join(ranks.options(self));
      const std::vector<std::byte> data(1 << 20);
      std::byte go{};
      if (self == 2) {
        group.send(std::span<const std::byte>(&go, 1), 1);
        return sender_has_ended.wait();
      }
      if (self == 0) {
        group.recv(std::span(&go, 1), 1);
        ::raise(SIGKILL);
      }
      group.recv(std::span(&go, 1), 2);
      Future sent = group.send(std::span(data), 2, 0, Mode::begin);
      group.send(std::span<const std::byte>(&go, 1), 0);
      sent.wait();
    }));
  const std::string end = TestRanks::wait(processes[1]);
  sender_has_ended.set();
  EXPECT_EQ(end.rfind("rank 0 (process ", 0), 0U) << end;
  EXPECT_EQ(TestRanks::wait(processes[0]), "signal 9");
  EXPECT_EQ(TestRanks::wait(processes[2]), "");
}

}  // namespace
}  // namespace waywiser
