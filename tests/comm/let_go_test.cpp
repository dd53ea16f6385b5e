// After a call has returned or raised, nobody reads or writes its arrays, whatever step of the protocols another rank
// has stopped, died or been interrupted at. Otherwise the call does not return: the process ends.
#include <gtest/gtest.h>

#include <csignal>

#include "tests/comm/guarded_array.hpp"
#include "tests/comm/lent_gpu_array.hpp"
#include "tests/comm/two_faulty_ranks.hpp"
#include "tests/comm/with_variable.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/comm/message/fault_point.hpp"
#include "waywiser/group/inside.hpp"

namespace waywiser {
namespace {

constexpr std::byte full_byte{0x77}, blank_byte{0};

// The arrays of the ranks' calls. They are given up afterwards, except for exposed memory, which windows keep.
struct Arrays {
  GuardedArray give, take, exposed;
  std::optional<LentGpuArray> on_gpu;

  Arrays(Group& group, std::size_t bytes, bool gpus)
      : give(bytes, full_byte), take(bytes, blank_byte), exposed(bytes, full_byte) {
    if (gpus) on_gpu.emplace(*group.platform(), group.rank(), bytes, full_byte);
  }
  void replace() {
    give.replace();
    take.replace();
    if (on_gpu) on_gpu->replace();
  }
  bool are_untouched() { return give.is_untouched() && take.is_untouched() && (!on_gpu || on_gpu->is_untouched()); }
};
using OneOperation = std::function<void(Group&, Arrays&)>;

// The second rank sends and the first one receives, or the reverse.
OneOperation one_message(int from) {
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
  Future taken = group.recv(arrays.take.bytes(), other, 0, Mode::begin);
  Future given = group.send(arrays.give.bytes(), other, 0, Mode::begin);
  group.barrier();
  taken.wait();
  given.wait();
}

void maximum(Group& group, Arrays& arrays) {
  group.set_algorithm("ring");  // its messages are long enough to be copied by both ranks
  group.all_reduce(arrays.give.bytes(), arrays.take.bytes(), ReduceOp::max);
}

void maximum_in_the_background(Group& group, Arrays& arrays) {
  group.set_algorithm("ring");
  Future all = group.all_reduce(arrays.give.bytes(), arrays.take.bytes(), ReduceOp::max, Mode::begin);
  group.barrier();
  all.wait();
}

// The offset of a rank's flag in the memory that it exposes; behind it is the memory that the others put to and get
// from.
constexpr Bytes flag_bytes = 8;

Region region_of(const GuardedArray& array) { return {array.bytes().data(), array.bytes().size(), host(0)}; }

// For both ranks: the flag is at the end of the first half.
void put_and_signal(Group& group, Arrays& arrays) {
  const int other = 1 - group.rank();
  std::ranges::fill(arrays.exposed.bytes().first(flag_bytes), blank_byte);
  Window window = group.expose(region_of(arrays.exposed));
  const Region given = region_of(arrays.give).slice(0, arrays.give.bytes().size() - flag_bytes);
  window.put(given, other, flag_bytes);
  window.signal(other, 0, 1);
  window.wait(0, 1);
}

void get_what_is_exposed(Group& group, Arrays& arrays) {
  Window window = group.expose(region_of(arrays.exposed));
  window.get(region_of(arrays.take), 1 - group.rank(), 0);
  group.barrier();
}

// Out of a GPU of the second rank, to the first one's host or GPU.
void from_gpu_to_host(Group& group, Arrays& arrays) {
  group.rank() == 1 ? group.send(arrays.on_gpu->elements(), 0) : group.recv(arrays.take.bytes(), 1);
}

OneOperation from_gpu_to_gpu(int from) {
  return [from](Group& group, Arrays& arrays) {
    const int other = 1 - group.rank();
    group.rank() == from ? group.send(arrays.on_gpu->elements(), other) : group.recv(arrays.on_gpu->elements(), other);
  };
}

OneOperation from_gpu_to_gpu_in_runs(int from) {
  return [from](Group& group, Arrays& arrays) {
    const int other = 1 - group.rank();
    const Elements all = arrays.on_gpu->elements();
    if (group.rank() != from) return group.recv(all, other), void();
    const std::size_t third = all.count() / 3;
    const ElementRun runs[] = {{third, all.count() - 2 * third}, {0, third}, {all.count() - third, third}};
    send_runs(group, all, runs, other, 0).wait();
  };
}

struct LetGoCase {
  const char* name;
  OneOperation operation;
  std::size_t bytes;
  bool by_ucx = false;  // although it could be copied
  bool gpus = false;
};

// The call that reaches a step. A step without a case fails the test.
std::vector<LetGoCase> cases_of(ProtocolStep step) {
  switch (step) {
    case ProtocolStep::none: break;
    case ProtocolStep::lane_write: return {{"recv of 1 KiB", one_message(1), 1 << 10}};
    case ProtocolStep::rts: return {{"recv of 4 MiB", one_message(1), 4 << 20}};
    case ProtocolStep::cts: return {{"send of 4 MiB", one_message(0), 4 << 20}};
    case ProtocolStep::claim:
      return {{"recv of 4 MiB", one_message(1), 4 << 20},
              {"send of 4 MiB", one_message(0), 4 << 20},
              {"sendrecv of 1 MiB", exchange_arrays, 1 << 20},
              {"futures of 1 MiB", in_the_background, 1 << 20},
              {"all_reduce of 4 MiB", maximum, 4 << 20},
              {"start_all_reduce of 4 MiB", maximum_in_the_background, 4 << 20}};
    case ProtocolStep::fin:
      return {{"send of 4 MiB", one_message(0), 4 << 20}, {"all_reduce of 4 MiB", maximum, 4 << 20}};
    case ProtocolStep::rendezvous:
      return {{"recv of 1 MiB by UCX", one_message(1), 1 << 20, true},
              {"send of 1 MiB by UCX", one_message(0), 1 << 20, true},
              {"sendrecv of 1 MiB by UCX", exchange_arrays, 1 << 20, true}};
    case ProtocolStep::put:
      return {{"put of 1 KiB", put_and_signal, 1 << 10},
              {"put of 4 MiB", put_and_signal, 4 << 20},
              {"get of 1 KiB", get_what_is_exposed, 1 << 10},
              {"get of 4 MiB", get_what_is_exposed, 4 << 20}};
    case ProtocolStep::flag: return {{"signal after a put of 4 MiB", put_and_signal, 4 << 20}};
    case ProtocolStep::announcement:
      return {{"recv of 4 MiB out of a GPU", from_gpu_to_host, 4 << 20, false, true},
              {"recv of 4 MiB from GPU to GPU", from_gpu_to_gpu(1), 4 << 20, false, true},
              {"recv of 16 KiB from GPU to GPU", from_gpu_to_gpu(1), 16 << 10, false, true}};
    case ProtocolStep::piece: return {{"recv of 4 MiB out of a GPU", from_gpu_to_host, 4 << 20, false, true}};
    case ProtocolStep::gpu_copy:
      return {{"recv of 4 MiB from GPU to GPU", from_gpu_to_gpu(1), 4 << 20, false, true},
              {"recv of runs of 4 MiB from GPU to GPU", from_gpu_to_gpu_in_runs(1), 4 << 20, false, true},
              {"send of 16 KiB from GPU to GPU", from_gpu_to_gpu(0), 16 << 10, false, true}};
    case ProtocolStep::round:
      return {{"all_reduce of 100 KiB", maximum, 100 << 10}, {"all_reduce of 4 MiB", maximum, 4 << 20}};
    case ProtocolStep::close: return {{"send of 4 MiB, then close", one_message(0), 4 << 20}};
  }
  return {};
}

// How much of a message each rank copies is chance: if the step was not reached, the call is repeated.
unsigned most_tries(ProtocolStep step) { return step == ProtocolStep::claim || step == ProtocolStep::fin ? 20 : 1; }

// For both ranks: makes the call, then maps other memory in place of the arrays until the group ends.
void call_and_replace(TwoFaultyRanks::Rank rank, const LetGoCase& what) {
  Arrays arrays(rank.group, what.bytes, what.gpus);
  bool returned = false;
  try {
    rank.group.barrier();  // the second rank may be through, and interrupted, while the first one is still there
    rank.arm();
    what.operation(rank.group, arrays);
    returned = true;
  } catch (const Error&) {
  }
  require_that(!returned || arrays.take.holds_only(full_byte) || arrays.take.holds_only(blank_byte), "what was sent");
  arrays.replace();
  rank.settle();
  try {
    rank.group.close();
  } catch (const Error&) {
  }
  require_that(arrays.are_untouched(), "nobody to read or write the arrays");
}

void expect_good_end(const RankEnd& end, const std::string& who) {
  if (end.exit_code == 70) {
    EXPECT_NE(end.errors.find("can still reach the memory of"), std::string::npos) << who << end.errors;
    EXPECT_EQ(std::ranges::count(end.errors, '\n'), 1) << who << end.errors;
    return;
  }
  EXPECT_EQ(end.exit_code, 0) << who << "signal " << end.signal << " " << end.problem << end.errors;
}

// Whether the second rank has reached the step, as far as this can be seen.
bool try_once(const LetGoCase& what, const std::string& fault, const std::string& who) {
  std::optional<WithVariable> variable;
  if (what.by_ucx) variable.emplace("WAYWISER_MAILBOX", "short");
  TwoFaultyRanks ranks(fault);
  ranks.virtual_gpus = what.gpus ? 2 : 0;
  ranks.run([&](TwoFaultyRanks::Rank rank) { call_and_replace(rank, what); });
  const bool dies = fault.ends_with(":die"), was_killed = ranks.second.signal == SIGKILL;
  expect_good_end(ranks.first, who + "first rank: ");
  if (!dies || !was_killed) expect_good_end(ranks.second, who + "second rank: ");
  return dies ? was_killed : ranks.stopped || !fault.ends_with(":stop");
}

class LetGo : public testing::TestWithParam<std::tuple<int, const char*>> {};

// Faults: host D S; forming Q; gpus G
TEST_P(LetGo, OfTheArrays) {
  const auto step = static_cast<ProtocolStep>(std::get<0>(GetParam()));
  const std::string fault = std::string(name(step)) + ":" + std::get<1>(GetParam());
  const std::vector<LetGoCase> cases = cases_of(step);
  EXPECT_FALSE(cases.empty()) << "no call is known that comes to " << name(step);
  for (const LetGoCase& each : cases) {
    const std::string who = std::string(each.name) + " " + fault + " ";
    unsigned tries = 0;
    while (tries++ < most_tries(step) && !try_once(each, fault, who) && !HasFailure()) {
    }
    EXPECT_LE(tries, most_tries(step)) << who << "was not come to";
  }
}

INSTANTIATE_TEST_SUITE_P(AtEveryStep, LetGo,
                         testing::Combine(testing::Range(1, protocol_steps),
                                          testing::Values("stop", "die", "interrupt")),
                         [](const auto& each) {
                           return std::string(name(static_cast<ProtocolStep>(std::get<0>(each.param)))) + "_" +
                                  std::get<1>(each.param);
                         });

// The line names the rank and the memory that it holds.
TEST(LetGoLine, ARankThatStopsInACopyEndsTheOther) {
  RankEnd first;
  for (bool stopped = false; !stopped;) {  // who copies is chance
    TwoFaultyRanks ranks("claim:stop");
    ranks.run([](TwoFaultyRanks::Rank rank) { call_and_replace(rank, {"", one_message(1), 4 << 20}); });
    first = ranks.first;
    stopped = ranks.stopped;
  }
  EXPECT_EQ(first.exit_code, 70) << first.problem;
  EXPECT_NE(first.errors.find("waywiser: rank 0 ends: rank 1 (process "), std::string::npos) << first.errors;
  EXPECT_NE(first.errors.find("can still reach the memory of recv #1 of 4194304 uint8 from rank 1"), std::string::npos)
      << first.errors;
}

}  // namespace
}  // namespace waywiser
