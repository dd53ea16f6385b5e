// Long messages that both ranks copy.
#include "waywiser/comm/shared_memory/shared_copy.hpp"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <numeric>
#include <thread>

#include "tests/comm/test_ranks.hpp"
#include "tests/comm/with_variable.hpp"
#include "waywiser/comm/message/held_memory.hpp"

namespace waywiser {
namespace {

constexpr std::uint64_t nobody = 1u << 30;  // the number of no process

std::vector<std::byte> numbered(std::size_t bytes, int seed) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>((i * 31 + i / 251 + seed) & 0xff);
  return data;
}

std::uint64_t address(const std::byte* data) { return reinterpret_cast<std::uintptr_t>(data); }

// The shared state of the two ends of a copy, in one process. `there`: the process number that each end uses for the
// other.
struct Ends {
  Ends(std::size_t bytes, std::uint64_t receiver, std::uint64_t sender)
      : source(numbered(bytes, 1)), target(bytes), send{&copy, receiver, 0, bytes}, receive{&copy, sender, 0, bytes} {
    receive.there = address(source.data());
    copy.state = SharedCopy::offered;
  }
  void open() {
    copy.destination = address(target.data());
    copy.state = SharedCopy::open;
  }
  bool all_there() const { return source == target; }

  SharedCopy copy{};
  std::vector<std::byte> source, target;
  CopyEnd send, receive;
};

const std::uint64_t this_process = process_to_copy(static_cast<std::uint64_t>(::getpid()));

TEST(SharedCopy, ChunksCoverEveryLength) {
  for (const std::size_t bytes : {1u, 16383u, 16384u, 32768u, 32769u, 65536u, 100001u, 524288u, 524289u, 10000000u}) {
    EXPECT_GE(chunks_of(bytes) * chunk_bytes(bytes), bytes);
    EXPECT_LT((chunks_of(bytes) - 1) * chunk_bytes(bytes), bytes);
  }
}

TEST(SharedCopy, EachEndAloneOrInTurnsCopiesAll) {
  for (const std::size_t bytes : {32768u, 50001u, 524289u, 3000001u})
    for (const std::uint32_t most : {1u, 2u})
      for (const int who : {1, 2, 3}) {
        Ends ends(bytes, this_process, this_process);
        EXPECT_EQ(ends.send.send(ends.source.data(), most), Turn::nothing_to_do);  // not open
        ends.open();
        Turn last = Turn::copied;
        for (unsigned turn = 0; last != Turn::complete; ++turn) {
          ASSERT_LT(turn, 100u);
          if ((who & 1) != 0) last = ends.send.send(ends.source.data(), most);
          if ((who & 2) != 0 && last != Turn::complete) last = ends.receive.receive(ends.target.data(), most);
        }
        EXPECT_TRUE(ends.all_there());
        if (who == 1) {
          EXPECT_EQ(ends.receive.receive(ends.target.data(), most), Turn::complete);
        }
        EXPECT_EQ(ends.send.send(ends.source.data(), most), Turn::complete);
      }
}

TEST(SharedCopy, BothAtOnce) {
  for (int round = 0; round < 200; ++round) {
    Ends ends(40000 + 7001 * static_cast<std::size_t>(round), this_process, this_process);
    std::thread other([&] {
      while (ends.send.send(ends.source.data(), 1) != Turn::complete) std::this_thread::yield();
    });
    ends.open();
    while (ends.receive.receive(ends.target.data(), 1) != Turn::complete) std::this_thread::yield();
    other.join();
    ASSERT_TRUE(ends.all_there());
  }
}

TEST(SharedCopy, TheReceiverAloneLeavesNothingToClaim) {
  Ends ends(100000, this_process, this_process);
  EXPECT_EQ(ends.receive.receive_alone(ends.target.data()), Turn::complete);
  EXPECT_TRUE(ends.all_there());
  EXPECT_EQ(ends.send.send(ends.source.data(), 2), Turn::complete);
  EXPECT_FALSE(ends.receive.is_held(false));
  Ends unreadable(100000, this_process, nobody);
  EXPECT_EQ(unreadable.receive.receive_alone(unreadable.target.data()), Turn::refused);
  EXPECT_EQ(unreadable.send.send(unreadable.source.data(), 2), Turn::refused);
  Ends withdrawn(100000, this_process, this_process);
  withdrawn.send.stop();
  EXPECT_EQ(withdrawn.receive.receive_alone(withdrawn.target.data()), Turn::nothing_to_do);
  EXPECT_FALSE(withdrawn.all_there());
}

TEST(SharedCopy, WhatTheSenderCannotWriteTheReceiverReads) {
  Ends ends(3000001, nobody, this_process);
  ends.open();
  EXPECT_EQ(ends.send.send(ends.source.data(), 2), Turn::failed);
  EXPECT_EQ(ends.send.send(ends.source.data(), 2), Turn::nothing_to_do);  // the receiver has to read the first ones
  EXPECT_EQ(ends.send.send(ends.source.data(), 0), Turn::nothing_to_do);
  for (unsigned turn = 0; ends.receive.receive(ends.target.data(), 1) != Turn::complete; ++turn) ASSERT_LT(turn, 100u);
  EXPECT_TRUE(ends.all_there());
  EXPECT_EQ(ends.send.send(ends.source.data(), 0), Turn::complete);
}

TEST(SharedCopy, IsRefusedWhereTheReceiverCannotRead) {
  Ends ends(100000, this_process, nobody);
  ends.open();
  EXPECT_EQ(ends.receive.receive(ends.target.data(), 1), Turn::refused);
  EXPECT_EQ(ends.send.send(ends.source.data(), 1), Turn::refused);
}

TEST(SharedCopy, AfterGivingUpNothingIsTaken) {
  for (const bool by_sender : {false, true}) {
    Ends ends(100000, this_process, this_process);
    ends.open();
    EXPECT_EQ(ends.send.send(ends.source.data(), 1), Turn::copied);
    (by_sender ? ends.send : ends.receive).stop();
    EXPECT_FALSE(ends.send.is_held(false));
    EXPECT_FALSE(ends.receive.is_held(true));
    EXPECT_EQ(ends.send.send(ends.source.data(), 1), Turn::nothing_to_do);
    EXPECT_EQ(ends.receive.receive(ends.target.data(), 1), Turn::nothing_to_do);
  }
  Ends ends(100000, this_process, this_process);
  ends.send.stop();  // before it was open
  EXPECT_EQ(ends.copy.state, SharedCopy::withdrawn);
}

TEST(SharedCopy, WhoHasClaimedAChunkHoldsTheMemory) {
  Ends ends(100000, this_process, this_process);
  ends.open();
  ends.copy.sender_copies = 1;                                      // the sender has claimed, and is not through
  for (const CopyEnd& end : {ends.receive, ends.send}) end.stop();  // both ends give up
  EXPECT_TRUE(ends.receive.is_held(true));
  EXPECT_FALSE(ends.send.is_held(false));
  EXPECT_FALSE(process_has_ended(static_cast<std::uint64_t>(::getpid())));
  EXPECT_TRUE(process_has_ended(nobody));
}

// Messages by all ways in both directions, more than can be offered at once, received in another order.
void exchange(Group& group) {
  const int other = 1 - group.rank();
  std::vector<std::vector<std::byte>> out, in;
  for (const std::size_t bytes : {100u, 20000u, 32767u, 32768u, 65537u, 300000u, 2000003u})
    for (int copy = 0; copy < 14; ++copy) out.push_back(numbered(bytes, static_cast<int>(out.size()) + group.rank()));
  std::vector<Future> under_way;
  for (std::size_t i = 0; i < out.size(); ++i)
    under_way.push_back(group.send(std::span<const std::byte>(out[i]), other, static_cast<int>(i % 5), Mode::begin));
  in.resize(out.size());
  for (const std::size_t tag : {4u, 2u, 0u, 1u, 3u})
    for (std::size_t i = tag; i < out.size(); i += 5) {
      in[i].resize(out[i].size());
      group.recv(std::span(in[i]), other, static_cast<int>(tag));
      require_that(in[i] == numbered(in[i].size(), static_cast<int>(i) + other), "message " + std::to_string(i));
    }
  for (Future& future : under_way) future.wait();
  group.barrier();
}

// Applies to this thread and its children, as sandboxes do.
void forbid(long call) {
  std::array<sock_filter, 4> filter{{{BPF_LD | BPF_W | BPF_ABS, 0, 0, 0},  // the number of the call
                                     {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, static_cast<std::uint32_t>(call)},
                                     {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM},
                                     {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}}};
  const sock_fprog program{filter.size(), filter.data()};
  require_that(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                   ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0,
               "a filter of system calls");
}

TEST(SharedCopy, MessagesOfAllLengthsInAnyOrder) {
  EXPECT_EQ(TestRanks(2).in_processes(exchange), no_problems);
  EXPECT_EQ(TestRanks(2).in_threads(exchange), no_problems);
}

TEST(SharedCopy, GoesWithoutUcx) {
  const WithVariable variable("UCX_TLS", "self");  // reaches nobody else
  EXPECT_EQ(TestRanks(2).in_processes([](Group& group) {
    const int other = 1 - group.rank();
    const auto mine = numbered(1 << 20, group.rank());
    std::vector<std::byte> theirs(mine.size());
    group.sendrecv(std::span<const std::byte>(mine), other, std::span(theirs), other);
    require_that(theirs == numbered(mine.size(), other), "what came");
  }),
            no_problems);
}

TEST(SharedCopy, CanBeSwitchedOff) {
  const WithVariable variable("WAYWISER_MAILBOX", "short");
  EXPECT_EQ(TestRanks(2).in_processes(exchange), no_problems);
}

TEST(SharedCopy, WhereTheSystemForbidsIt) {
  const WithVariable variable("UCX_TLS", "^cma");  // UCX would fail with the same call
  for (const long call : {SYS_process_vm_readv, SYS_process_vm_writev})
    EXPECT_EQ(TestRanks(2).in_processes([&](Group& group) {
      if (group.rank() == 1) forbid(call);
      exchange(group);
      exchange(group);
    }),
              no_problems);
  EXPECT_EQ(TestRanks(2).in_processes([](Group& group) {
    forbid(SYS_process_vm_readv);
    forbid(SYS_process_vm_writev);
    exchange(group);
  }),
            no_problems);
}

}  // namespace
}  // namespace waywiser
