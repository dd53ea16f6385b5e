// After a call has returned or raised nobody reads or writes its arrays, at whatever step another rank stops, dies or
// is interrupted; or the call has not returned, and the process has ended.
#include <gtest/gtest.h>

#include <csignal>

#include "tests/comm/guarded_array.hpp"
#include "tests/comm/two_faulty_ranks.hpp"
#include "tests/comm/with_variable.hpp"
#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr std::byte full_byte{0x77}, blank_byte{0};

struct Arrays {
  GuardedArray give, take;
};
using Operation = std::function<void(Group&, Arrays&)>;

// The second rank sends what the first one receives, or the other way round.
Operation one_message(int from) {
  return [from](Group& group, Arrays& arrays) {
    const int other = 1 - group.rank();
    group.rank() == from ? group.send(arrays.give.bytes(), other) : group.recv(arrays.take.bytes(), other);
  };
}

void exchange_arrays(Group& group, Arrays& arrays) {
  const int other = 1 - group.rank();
  group.sendrecv(arrays.give.bytes(), other, arrays.take.bytes(), other);
}

void in_the_background(Group& group, Arrays& arrays) {
  const int other = 1 - group.rank();
  Future taken = group.start_recv(arrays.take.bytes(), other);
  Future given = group.start_send(arrays.give.bytes(), other);
  group.barrier();
  taken.wait();
  given.wait();
}

void maximum(Group& group, Arrays& arrays) {
  group.all_reduce(arrays.give.bytes(), arrays.take.bytes(), ReduceOp::max);
}

void maximum_in_the_background(Group& group, Arrays& arrays) {
  Future all = group.start_all_reduce(arrays.give.bytes(), arrays.take.bytes(), ReduceOp::max);
  group.barrier();
  all.wait();
}

// Both ranks: the call, then other memory at the place of the arrays, until the end of the group.
void call_and_replace(TwoFaultyRanks::Rank rank, const Operation& operation, std::size_t bytes) {
  Arrays arrays{GuardedArray(bytes, full_byte), GuardedArray(bytes, blank_byte)};
  rank.group.barrier();
  rank.arm();
  bool returned = false;
  try {
    operation(rank.group, arrays);
    returned = true;
  } catch (const Error&) {
  }
  require_that(!returned || arrays.take.holds_only(full_byte) || arrays.take.holds_only(blank_byte), "what was sent");
  arrays.give.replace();
  arrays.take.replace();
  rank.settle();
  try {
    rank.group.close();
  } catch (const Error&) {
  }
  require_that(arrays.give.is_untouched(), "nobody to write into the array that was sent");
  require_that(arrays.take.is_untouched(), "nobody to write into the array that was received");
}

void expect_good_end(const RankEnd& end, const std::string& who) {
  if (end.exit_code == 70) {
    EXPECT_NE(end.errors.find("can still reach the memory of"), std::string::npos) << who << end.errors;
    EXPECT_EQ(std::ranges::count(end.errors, '\n'), 1) << who << end.errors;
    return;
  }
  EXPECT_EQ(end.exit_code, 0) << who << "signal " << end.signal << " " << end.problem << end.errors;
}

struct LetGoCase {
  const char* name;
  Operation operation;
  std::size_t bytes;
  std::vector<const char*> steps;
};

void try_all(const std::vector<LetGoCase>& let_go_cases, const std::vector<const char*>& faults) {
  for (const LetGoCase& each : let_go_cases)
    for (const char* step : each.steps)
      for (const char* fault : faults) {
        TwoFaultyRanks ranks(std::string(step) + ":" + fault);
        ranks.run([&](TwoFaultyRanks::Rank rank) { call_and_replace(rank, each.operation, each.bytes); });
        const std::string who = std::string(each.name) + " " + step + ":" + fault + " ";
        // Who copies how much of a message is chance; one by UCX is left to it by its sender, and by the receiver.
        const bool is_chance = std::string(step) == "claim" || std::string(step) == "fin";
        EXPECT_TRUE(is_chance || ranks.stopped || std::string(fault) != "stop") << who << "was not come to";
        expect_good_end(ranks.first, who + "first rank: ");
        if (ranks.second.signal != SIGKILL || std::string(fault) != "die")
          expect_good_end(ranks.second, who + "second rank: ");
      }
}

const std::vector<LetGoCase>& let_go_cases() {
  static const std::vector<LetGoCase> all{{"recv of 1 KiB", one_message(1), 1 << 10, {"lane_write"}},
                                          {"recv of 4 MiB", one_message(1), 4 << 20, {"rts", "claim"}},
                                          {"send of 4 MiB", one_message(0), 4 << 20, {"cts", "claim"}},
                                          {"sendrecv of 1 MiB", exchange_arrays, 1 << 20, {"claim"}},
                                          {"futures of 1 MiB", in_the_background, 1 << 20, {"claim"}},
                                          {"all_reduce of 100 KiB", maximum, 100 << 10, {"round"}},
                                          {"all_reduce of 4 MiB", maximum, 4 << 20, {"claim", "fin"}},
                                          {"start_all_reduce of 4 MiB", maximum_in_the_background, 4 << 20, {"claim"}}};
  return all;
}

TEST(LetGo, OfARankThatStops) { try_all(let_go_cases(), {"stop"}); }
TEST(LetGo, OfARankThatDies) { try_all(let_go_cases(), {"die"}); }
TEST(LetGo, OfARankThatIsInterrupted) { try_all(let_go_cases(), {"interrupt"}); }

TEST(LetGo, ByUcxAlone) {
  const WithVariable variable("WAYWISER_MAILBOX", "short");
  try_all({{"send of 1 MiB by UCX", one_message(0), 1 << 20, {"rendezvous"}},
           {"sendrecv of 1 MiB by UCX", exchange_arrays, 1 << 20, {"rendezvous"}}},
          {"stop", "die", "interrupt"});
}

// The line says who holds what.
TEST(LetGo, ARankThatStopsInACopyEndsTheOther) {
  TwoFaultyRanks ranks("claim:stop");
  ranks.run([](TwoFaultyRanks::Rank rank) { call_and_replace(rank, one_message(1), 4 << 20); });
  EXPECT_TRUE(ranks.stopped);
  EXPECT_EQ(ranks.first.exit_code, 70) << ranks.first.problem;
  EXPECT_NE(ranks.first.errors.find("waywiser: rank 0 ends: rank 1 (process "), std::string::npos)
      << ranks.first.errors;
  EXPECT_NE(ranks.first.errors.find("can still reach the memory of recv #1 of 4194304 uint8 from rank 1"),
            std::string::npos)
      << ranks.first.errors;
}

}  // namespace
}  // namespace waywiser
