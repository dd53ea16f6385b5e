// If a future is dropped before its operation is done, the operation keeps its memory or ends.
#include <gtest/gtest.h>

#include "tests/comm/guarded_array.hpp"
#include "tests/comm/test_ranks.hpp"
#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr std::byte given_byte{0x77}, no_byte{0};
constexpr std::size_t dropped_lengths[] = {100, 20000, 100000, 1 << 20};

std::shared_ptr<GuardedArray> array_of(std::size_t bytes, std::byte fill) {
  return std::make_shared<GuardedArray>(bytes, fill);
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(DroppedFuture, WhatKeepsItsArrayIsSentAndReceived) {
  EXPECT_EQ(TestRanks(2).in_processes([](Group& group) {
    const int other = 1 - group.rank();
    for (const std::size_t bytes : dropped_lengths) {
      std::weak_ptr<GuardedArray> given, taken;
      {
        auto give = array_of(bytes, given_byte), take = array_of(bytes, no_byte);
        given = give;
        taken = take;
        Future receiving = group.recv(take->bytes(), other, 1, Mode::begin);
        if (receiving.is_under_way()) receiving.keep(take);
        group.barrier();  // both have begun to receive before anything is sent
        Future sending = group.send(give->bytes(), other, 1, Mode::begin);
        if (sending.is_under_way()) sending.keep(give);
      }
      std::uint8_t gone = 0, all_gone = 0;
      for (int turn = 0; turn < 100000 && all_gone == 0; ++turn) {
        gone = given.expired() && taken.expired() ? 1 : 0;
        group.all_reduce(std::span(&gone, 1), std::span(&all_gone, 1), ReduceOp::min);
      }
      require_that(all_gone == 1, "that the arrays are let go of");
    }
  }),
            no_problems);
}

TEST(DroppedFuture, WhatIsKeptComesAsItWas) {
  EXPECT_EQ(TestRanks(2).in_processes([](Group& group) {
    for (const std::size_t bytes : dropped_lengths) {
      if (group.rank() == 0) {
        auto give = array_of(bytes, given_byte);
        Future sending = group.send(give->bytes(), 1, 0, Mode::begin);
        if (sending.is_under_way()) sending.keep(std::move(give));
      }
      group.barrier();
      if (group.rank() == 0) continue;
      GuardedArray take(bytes, no_byte);
      group.recv(take.bytes(), 0);
      require_that(take.holds_only(given_byte), "what was sent");
    }
    group.barrier();
  }),
            no_problems);
}

TEST(DroppedFuture, WithoutAKeeperTheOperationEndsAndTheGroupSaysSo) {
  for (const bool sends : {false, true}) {
    const auto problems = TestRanks(2).in_processes([sends](Group& group) {
      group.barrier();
      if (group.rank() == 1) {
        group.barrier();
        return;
      }
      GuardedArray array(1 << 20, given_byte);
      {
        if (sends)
          static_cast<void>(group.send(array.bytes(), 1, 0, Mode::begin));
        else
          static_cast<void>(group.recv(array.bytes(), 1, 0, Mode::begin));
      }
      array.replace();
      try {
        group.barrier();
      } catch (const Error& error) {
        require_that(array.is_untouched(), "nobody to write into the array");
        throw;
      }
    });
    ASSERT_EQ(problems.size(), 2u);
    for (const std::string& problem : problems)
      EXPECT_TRUE(says(problem, std::string("rank 0: ") + (sends ? "send" : "recv") + " #1 of 1048576 uint8") &&
                  says(problem, "was given up"))
          << problem;
  }
}

}  // namespace
}  // namespace waywiser
