// Groups whose ranks take each other for ranks of several machines, and encrypt what goes between them.
#include "waywiser/comm/network/encryption.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <numeric>

#include "tests/comm/test_ranks.hpp"
#include "tests/comm/with_variable.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/device/platform.hpp"

namespace waywiser {
namespace {

struct RanksApart : TestRanks {
  explicit RanksApart(int size, int of_machine = 1) : TestRanks(size) {
    machines_apart = true;
    ranks_of_machine = of_machine;
    secret = "known to the ranks of this test";
  }
};

class EncryptionTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!ssl_library().usable()) GTEST_SKIP() << ssl_library().why_not();
  }
  WithVariable encrypt_{"WAYWISER_ENCRYPT", "1"};
};

std::vector<std::uint8_t> bytes_from(int rank, std::size_t bytes) {
  std::vector<std::uint8_t> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::uint8_t>(i * 13 + i / 255 + 77u * rank);
  return data;
}

TEST_F(EncryptionTest, MessagesOfAllSizesArriveBothWaysAtOnce) {
  EXPECT_EQ(RanksApart(2).in_processes([](Group& group) {
    const int other = 1 - group.rank();
    for (const std::size_t bytes : {0, 1, 8, 8192, 8193, 65536, 65537, 262145, 4000001}) {
      const auto mine = bytes_from(group.rank(), bytes);
      std::vector<std::uint8_t> theirs(bytes);
      group.sendrecv(std::span(mine), other, std::span(theirs), other);
      require_that(theirs == bytes_from(other, bytes), "bytes differ at " + std::to_string(bytes));
    }
  }),
            no_problems);
}

TEST_F(EncryptionTest, WhatEncryptsIsKnownBeforeTheFirstMessage) {
  EXPECT_EQ(RanksApart(3, 2).in_processes([](Group& group) {
    const int apart = group.rank() == 2 ? 0 : 2, mine = group.rank() == 2 ? 2 : 1 - group.rank();
    require_that(group.encrypted_by(apart) == "openssl", "before the first message: " + group.encrypted_by(apart));
    require_that(group.encrypted_by(mine).empty(), "within the machine");
    group.barrier();
    require_that(group.encrypted_by(apart) == "openssl", "then: " + group.encrypted_by(apart));
  }),
            no_problems);
}

// Two ranks on each of two machines: some messages by shared memory, some encrypted.
TEST_F(EncryptionTest, CollectivesMixItWithSharedMemory) {
  EXPECT_EQ(RanksApart(4, 2).in_processes([](Group& group) {
    for (const std::size_t count : {1, 1000, 300000}) {
      std::vector<double> mine(count), sum(count);
      for (std::size_t i = 0; i < count; ++i) mine[i] = static_cast<double>(i % 1000) * (group.rank() + 1);
      group.all_reduce(std::span<const double>(mine), std::span(sum));
      for (std::size_t i = 0; i < count; ++i)
        require_that(sum[i] == static_cast<double>(i % 1000) * 10, "a sum is wrong");
      std::vector<double> give(4 * count, group.rank()), take(4 * count);
      group.all_to_all(std::span<const double>(give), std::span(take));
      for (std::size_t i = 0; i < take.size(); ++i)
        require_that(take[i] == static_cast<double>(i / count), "a block is of another rank");
    }
  }),
            no_problems);
}

TEST_F(EncryptionTest, ArraysOfGpusAreStaged) {
  RanksApart ranks(2);
  ranks.virtual_gpus = 1;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    const Memory memory = group.platform()->allocate(gpu(0), 1 << 20, Allocation::gpu);
    const auto stream = group.platform()->open_stream(gpu(0));
    std::vector<std::uint8_t> bytes = bytes_from(5, 1 << 20);
    const Region host_side{reinterpret_cast<std::byte*>(bytes.data()), bytes.size(), host(0)};
    if (group.rank() == 0) {
      stream->copy(memory.region(), host_side);
      stream->synchronize(Deadline::in(20));
      group.send({memory.region(), DataType::uint8}, 1);
      return;
    }
    group.recv({memory.region(), DataType::uint8}, 0);
    std::ranges::fill(bytes, std::uint8_t{});
    stream->copy(host_side, memory.region());
    stream->synchronize(Deadline::in(20));
    require_that(bytes == bytes_from(5, 1 << 20), "bytes differ");
  }),
            no_problems);
}

TEST_F(EncryptionTest, UnlikeLengthsAreToldAsWithoutIt) {
  const auto problems = RanksApart(2).in_processes([](Group& group) {
    std::vector<std::uint8_t> data(group.rank() == 0 ? 100000 : 50000);
    if (group.rank() == 0)
      group.send(std::span<const std::uint8_t>(data), 1);
    else
      group.recv(std::span(data), 0);
  });
  ASSERT_FALSE(problems.empty());
  EXPECT_NE(problems.back().find("sent 100000 bytes where 50000 were expected"), std::string::npos) << problems.back();
}

TEST_F(EncryptionTest, OneSidedCallsSayThatTheyAreNotEncrypted) {
  const auto problems = RanksApart(2).in_processes([](Group& group) {
    std::vector<std::uint64_t> memory(4);
    const Window window = group.expose(Region{reinterpret_cast<std::byte*>(memory.data()), 32, host(0)});
    if (group.rank() == 0) window.signal(1, 0, 7);
  });
  ASSERT_FALSE(problems.empty());
  EXPECT_NE(problems.front().find("put, get and signal are not encrypted"), std::string::npos) << problems.front();
}

TEST_F(EncryptionTest, ARankThatDiesIsNamed) {
  const RanksApart ranks(2);
  std::vector<TestRanks::Process> processes;
  for (int rank = 0; rank < 2; ++rank)
    processes.push_back(ranks.start(rank, [&](int self) {
      Group group = Group::join(ranks.options(self));
      group.barrier();
      if (self == 1) ::raise(SIGKILL);
      std::vector<std::uint8_t> data(1000000);
      group.recv(std::span(data), 1);
    }));
  EXPECT_NE(TestRanks::wait(processes[0]).find("rank 1 (process"), std::string::npos);
  EXPECT_EQ(TestRanks::wait(processes[1]), "signal 9");
}

TEST_F(EncryptionTest, WithoutASecretItIsRefused) {
  RanksApart ranks(2);
  ranks.secret.clear();
  for (const std::string& problem : ranks.in_processes([](Group&) {}))
    EXPECT_NE(problem.find("it is not set"), std::string::npos) << problem;
}

TEST_F(EncryptionTest, AllRanksMustWantIt) {
  const RanksApart ranks(2);
  std::vector<TestRanks::Process> processes;
  for (int rank = 0; rank < 2; ++rank)
    processes.push_back(ranks.start(rank, [&](int self) {
      const WithVariable encrypt("WAYWISER_ENCRYPT", self == 0 ? "1" : "0");
      Group::join(ranks.options(self));
    }));
  for (const TestRanks::Process& process : processes) {
    const std::string problem = TestRanks::wait(process);
    EXPECT_NE(problem.find("does not encrypt, rank 0 does"), std::string::npos) << problem;
  }
}

TEST_F(EncryptionTest, AnotherValueThanOnOrOffIsRefused) {
  const WithVariable wrong("WAYWISER_ENCRYPT", "yes");
  EXPECT_THROW(static_cast<void>(switched_on("WAYWISER_ENCRYPT")), Error);
}

}  // namespace
}  // namespace waywiser
