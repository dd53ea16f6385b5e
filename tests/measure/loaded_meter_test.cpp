#include "waywiser/measure/loaded_meter.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <thread>

#include "tests/measure/failure.hpp"
#include "waywiser/measure/pair_class.hpp"
#include "waywiser/measure/start_barrier.hpp"

namespace waywiser {
namespace {

const Path one_copy{"host_copy", host(0), host(0), 2, {{"stores", "temporal"}, {"threads", "1"}}};
const Path over_posix{"ucx", host(0), host(0), 2, {{"transports", "posix"}}};

Path between_gpus(const std::string& mechanism, std::map<std::string, std::string> parameters) {
  return {mechanism, gpu(0), gpu(1), 2, std::move(parameters)};
}

struct LoadedRow {
  std::string name;
  std::string backend;
  Path path;
};

std::vector<LoadedRow> loaded_rows() {
  std::vector<LoadedRow> all{{"host_copy", "host", one_copy}, {"ucx_posix", "host", over_posix}};
  for (const std::string backend : {"virtual_gpu", "cuda"}) {
    const auto add = [&](const std::string& name, const Path& path) {
      all.push_back({name + "_" + backend, backend, path});
    };
    add("copy_engine", between_gpus("copy_engine", {{"handle", "cuda_ipc"}}));
    add("copy_engine_descriptor", between_gpus("copy_engine", {{"handle", "descriptor"}}));
    add("sm_copy", between_gpus("sm_copy", {{"direction", "push"}, {"blocks", "2"}}));
    add("host_staged", between_gpus("host_staged", {{"variant", "whole"}}));
    add("up", {"copy_engine", host(0), gpu(1), 2, {}});
  }
  return all;
}

void PrintTo(const LoadedRow& row, std::ostream* out) { *out << row.name; }

// Host memory has one place here: the same pair several times. Two GPUs, which is what a GPU machine has at least.
PairClass class_for(const Path& path) {
  if (!path.destination.is_gpu()) return {"host", {3, {host(0), host(0)}}, 2};
  if (!path.source.is_gpu()) return {"host>gpu", {{host(0), gpu(0)}, {host(0), gpu(1)}}, 2};
  return {"gpu>gpu", {{gpu(0), gpu(1)}, {gpu(1), gpu(0)}}, 2};
}

struct Crowd {
  explicit Crowd(const LoadedRow& row, int most = 16, Seconds patience = 20)
      : choice{row.backend, {}}, platform(open()), meter(*platform, make(patience), {class_for(row.path)}, most) {}

  std::unique_ptr<Platform> open() {
    choice.machine.gpus = choice.backend == "host" ? 0 : 2;
    choice.machine.memory = 64ull << 20;
    return open_platform(choice);
  }
  LoadedMeter::MakeMeter make(Seconds patience) {
    return [this, patience] {
      return std::make_unique<TwoProcessMeter>(*platform, choice, WAYWISER_PEER_PATH, TwoProcessMeter::LimitOf(),
                                               patience);
    };
  }

  PlatformChoice choice;
  std::unique_ptr<Platform> platform;
  LoadedMeter meter;
};

class AllPairs : public testing::TestWithParam<LoadedRow> {};

TEST_P(AllPairs, EveryPairMovesEveryByte) {
  const LoadedRow& row = GetParam();
  if (row.backend == "cuda" && why_no_cuda()) GTEST_SKIP() << *why_no_cuda();
  Crowd crowd(row);
  if (row.backend == "cuda" && crowd.platform->gpu_count() < 2) GTEST_SKIP() << "one GPU";
  if (const auto why = crowd.meter.why_unavailable(row.path)) GTEST_SKIP() << *why;
  EXPECT_EQ(crowd.meter.verify(row.path, Operation::latency, 8), std::nullopt);
  EXPECT_EQ(crowd.meter.peers().size(), 1u);  // the others come with the first load
  for (const Bytes bytes : {Bytes{1}, Bytes{4097}, Bytes{16384}}) {
    EXPECT_EQ(crowd.meter.verify(row.path, Operation::loaded, bytes), std::nullopt) << bytes;
    const Sample sample = crowd.meter.take(row.path, Operation::loaded, bytes, 20);
    EXPECT_GT(sample.seconds, 0);
    EXPECT_GT(sample.cpu_seconds, 0);
    EXPECT_TRUE(sample.each.empty());
  }
  const std::vector<pid_t> peers = crowd.meter.peers();
  EXPECT_EQ(peers.size(), static_cast<std::size_t>(crowd.meter.pairs_at_once(row.path)));
  EXPECT_GT(peers.size(), 1u);
  EXPECT_GT(crowd.meter.take(row.path, Operation::streaming, 8, 20).seconds, 0);
  EXPECT_EQ(crowd.meter.peers(), peers);  // started once
}

INSTANTIATE_TEST_SUITE_P(Paths, AllPairs, testing::ValuesIn(loaded_rows()),
                         [](const auto& row) { return row.param.name; });

TEST(LoadedMeter, AKilledPeerIsTheOneReasonAndIsReplaced) {
  Crowd crowd({"", "host", one_copy});
  ASSERT_EQ(crowd.meter.verify(one_copy, Operation::loaded, 8), std::nullopt);
  const std::vector<pid_t> first = crowd.meter.peers();
  ASSERT_EQ(first.size(), 3u);
  std::atomic<bool> moving = false;
  std::jthread killer([&] {
    moving.wait(false);
    ::kill(first[1], SIGKILL);
  });
  const std::string text = failure([&] {
    while (crowd.meter.peers()[1] == first[1]) {
      crowd.meter.take(one_copy, Operation::loaded, 16384, 2000);
      moving = true;
      moving.notify_one();
    }
  });
  if (text != "nothing") {  // it was seen to be gone before the transfers
    EXPECT_TRUE(text.starts_with("io: loaded of 16K bytes, host_copy")) << text;
    EXPECT_TRUE(text.ends_with("host0>>host0: the peer process ended")) << text;
  }
  EXPECT_EQ(crowd.meter.verify(one_copy, Operation::loaded, 8), std::nullopt);
  EXPECT_NE(crowd.meter.peers()[1], first[1]);
}

TEST(LoadedMeter, APeerThatDiesAtOnceLeavesTheOthersAlone) {
  const PlatformChoice choice{"host", {}};
  const auto platform = open_platform(choice);
  int made = 0;
  const auto make = [&] {
    return std::make_unique<TwoProcessMeter>(*platform, choice, ++made == 2 ? "/bin/false" : WAYWISER_PEER_PATH);
  };
  LoadedMeter meter(*platform, make, {class_for(one_copy)}, 16);
  const std::string reason = "io: start of a peer process: the peer process ended";
  EXPECT_EQ(meter.verify(one_copy, Operation::streaming, 8), std::nullopt);
  const pid_t first = meter.peers().front();
  ASSERT_GT(first, 0);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(failure([&] { meter.verify(one_copy, Operation::loaded, 8); }), reason);
    EXPECT_EQ(meter.peers()[1], -1);
  }
  EXPECT_EQ(meter.verify(one_copy, Operation::streaming, 8), std::nullopt);
  EXPECT_EQ(meter.peers().front(), first);
}

TEST(LoadedMeter, AStoppedPeerIsATimeoutThatNamesItsPair) {
  const LoadedRow row{"", "virtual_gpu", between_gpus("copy_engine", {{"handle", "cuda_ipc"}})};
  Crowd crowd(row, 16, 2);
  ASSERT_EQ(crowd.meter.verify(row.path, Operation::loaded, 8), std::nullopt);
  ASSERT_EQ(::kill(crowd.meter.peers()[1], SIGSTOP), 0);
  EXPECT_EQ(failure([&] { crowd.meter.take(row.path, Operation::loaded, 8, 10); }),
            "timeout: loaded of 8 bytes, copy_engine(handle=cuda_ipc), gpu1>>gpu0: the peer process does not answer");
}

// The second peer runs on only when the first pair is ready, and both begin after that.
TEST(LoadedMeter, ALatePeerIsWaitedFor) {
  const PlatformChoice choice{"host", {}};
  const auto platform = open_platform(choice);
  TwoProcessMeter early(*platform, choice, WAYWISER_PEER_PATH), late(*platform, choice, WAYWISER_PEER_PATH);
  const PairRun run{Operation::loaded, 4096, 64, 1 << 16};
  for (TwoProcessMeter* meter : {&early, &late}) meter->prepare(one_copy, run);
  ASSERT_EQ(::kill(late.peer(), SIGSTOP), 0);
  StartBarrier line(2);
  Seconds ready = 0;
  TwoProcessMeter::Both first, second;
  {
    const std::jthread other([&] {
      second = late.run(one_copy, run, {2, [&](Deadline deadline) {
                                          ready = now_seconds();
                                          line.wait(deadline);
                                        }});
    });
    first = early.run(one_copy, run, {2, [&](Deadline deadline) {
                                        ::kill(late.peer(), SIGCONT);
                                        line.wait(deadline);
                                      }});
  }
  EXPECT_GE(first.mine.began, ready);
  EXPECT_GE(second.mine.began, ready);
  EXPECT_EQ(first.theirs.mismatches + second.theirs.mismatches, 0u);
}

TEST(LoadedMeter, NoMorePairsThanAllowedAndNoMoreMemory) {
  const LoadedRow row{"", "virtual_gpu", between_gpus("copy_engine", {{"handle", "cuda_ipc"}})};
  Crowd one(row, 1), both(row);
  EXPECT_EQ(one.meter.pairs_at_once(row.path), 1);
  EXPECT_EQ(both.meter.pairs_at_once(row.path), 2);
  EXPECT_EQ(both.meter.largest(row.path), 8ull << 20);  // two buffers of each pair in half of 64 MiB
  EXPECT_EQ(failure([&] { both.meter.take(row.path, Operation::loaded, 16 << 20, 1); }),
            "unavailable: half of the free memory is too little for 2 pairs at once with transfers of 16M bytes");
  EXPECT_EQ(most_pairs_at_once(1), 2);
  EXPECT_EQ(most_pairs_at_once(24), 12);
  EXPECT_EQ(most_pairs_at_once(512), 16);
}

TEST(PairsTogether, KeepEveryPlaceEquallyBusy) {
  PairClass all{"gpu>gpu", {}, 2};
  for (int a = 0; a < 4; ++a)
    for (int b = 0; b < 4; ++b)
      if (a != b) all.members.emplace_back(gpu(a), gpu(b));
  const std::pair first(gpu(0), gpu(1));
  EXPECT_EQ(pairs_together(all, first, 64).size(), 12u);
  for (const std::size_t most : {4u, 8u}) {
    std::map<Place, std::size_t> out, in;
    const auto chosen = pairs_together(all, first, most);
    EXPECT_EQ(chosen.front(), first);
    for (const auto& [source, destination] : chosen) ++out[source], ++in[destination];
    for (int place = 0; place < 4; ++place) EXPECT_EQ(out[gpu(place)] + in[gpu(place)], most / 2) << place;
  }
}

TEST(StartBarrier, AllBeginAfterTheLastHasCome) {
  constexpr int members = 4;
  StartBarrier line(members);
  Seconds come[members], begun[members];
  {
    std::vector<std::jthread> threads;
    for (int member = 0; member < members; ++member)
      threads.emplace_back([&, member] {
        come[member] = now_seconds();
        line.wait(Deadline::in(20));
        begun[member] = now_seconds();
      });
  }
  EXPECT_GE(*std::min_element(begun, begun + members), *std::max_element(come, come + members));
}

TEST(StartBarrier, TheFirstWhoCallsItOffGivesTheReason) {
  StartBarrier line(2);
  line.rethrow();
  line.call_off(std::make_exception_ptr(Error(ErrorKind::device, "first")));
  line.call_off(std::make_exception_ptr(Error(ErrorKind::device, "second")));
  EXPECT_EQ(failure([&] { line.wait(Deadline::in(20)); }), "io: another pair failed before all were ready");
  EXPECT_EQ(failure([&] { line.rethrow(); }), "device: first");
}

}  // namespace
}  // namespace waywiser
