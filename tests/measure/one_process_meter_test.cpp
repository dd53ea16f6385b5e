#include "waywiser/measure/one_process_meter.hpp"

#include <gtest/gtest.h>

#include <atomic>

#include "waywiser/base/error.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"

namespace waywiser {
namespace {

const Path host_path{"host_copy", host(0), host(0), 1, {{"stores", "temporal"}, {"threads", "1"}}};
const Path peer_copy{"copy_engine", gpu(0), gpu(1), 1, {}};

std::vector<PairClass> ring_of_three() {
  return {{"gpu>gpu", {{gpu(0), gpu(1)}, {gpu(1), gpu(2)}, {gpu(2), gpu(0)}}, 1}};
}

TEST(OneProcessMeter, VerifiesAndTimesEveryOperationOfTheHost) {
  const auto platform = open_host_platform();
  const Topology topology;
  OneProcessMeter meter(*platform, topology, {});
  EXPECT_FALSE(meter.simulated());
  EXPECT_FALSE(meter.why_unavailable(host_path));
  for (const Operation operation : {Operation::latency, Operation::streaming, Operation::bidirectional})
    for (const Bytes bytes : {Bytes{1}, Bytes{4097}, Bytes{3} << 20}) {
      EXPECT_EQ(meter.verify(host_path, operation, bytes), std::nullopt) << name(operation) << bytes;
      const Sample sample = meter.take(host_path, operation, bytes, 3);
      EXPECT_GT(sample.seconds, 0);
      EXPECT_GE(sample.cpu_seconds, 0);
    }
  EXPECT_EQ(meter.limit(host_path, Operation::latency).rate, 0);
  EXPECT_GT(meter.first_use(host_path), 0);
}

TEST(OneProcessMeter, TimesSingleTransfersWhereThereAreFew) {
  const auto platform = open_host_platform();
  const Topology topology;
  OneProcessMeter meter(*platform, topology, {});
  const Sample sample = meter.take(host_path, Operation::latency, 1 << 20, 5);
  ASSERT_EQ(sample.each.size(), 5u);
  double sum = 0;
  for (const Seconds each : sample.each) sum += each;
  EXPECT_NEAR(sum / 5, sample.seconds, 1e-9);
  EXPECT_TRUE(meter.take(host_path, Operation::latency, 8, 5000).each.empty());
}

TEST(OneProcessMeter, VirtualGpusAreSimulatedAndRunAllPairsAtOnce) {
  VirtualMachine machine;
  machine.gpus = 3;
  const auto platform = open_virtual_platform(machine);
  const Topology topology;
  OneProcessMeter meter(*platform, topology, ring_of_three());
  EXPECT_TRUE(meter.simulated());
  for (const Operation operation : operations) {
    EXPECT_EQ(meter.verify(peer_copy, operation, 100'000), std::nullopt) << name(operation);
    EXPECT_GT(meter.take(peer_copy, operation, 100'000, 2).seconds, 0) << name(operation);
  }
  // Each GPU is at two of the three ends of pairs at once; half of its memory is for them.
  EXPECT_LE(meter.largest(peer_copy), machine.memory / 4);
}

TEST(OneProcessMeter, UnavailableAndTooLargeAreErrorsThatLeaveItUsable) {
  VirtualMachine machine;
  machine.gpus = 2;
  machine.memory = 64 << 20;
  machine.no_peer_access = {{"", "no road"}, {"no road", ""}};
  const auto platform = open_virtual_platform(machine);
  const Topology topology;
  OneProcessMeter meter(*platform, topology, {});
  ASSERT_TRUE(meter.why_unavailable(peer_copy));
  EXPECT_THROW(meter.take(peer_copy, Operation::latency, 8, 1), Error);
  const Path staged{"host_staged", gpu(0), gpu(1), 1, {{"variant", "whole"}}};
  EXPECT_THROW(meter.take(staged, Operation::latency, 100 << 20, 1), Error);
  EXPECT_EQ(meter.verify(staged, Operation::latency, 1000), std::nullopt);
}

TEST(MeasuringThreads, RunsAllMembersAndPassesFailuresOn) {
  MeasuringThreads threads;
  for (const int members : {1, 4, 2, 5}) {
    std::atomic<int> seen = 0;
    EXPECT_GE(threads.run(members, [&](int member) { seen += 1 << member; }), 0);
    EXPECT_EQ(seen.load(), (1 << members) - 1);
  }
  EXPECT_THROW(threads.run(3,
                           [](int member) {
                             if (member == 2) throw Error(ErrorKind::device, "made to fail");
                           }),
               Error);
  EXPECT_GE(threads.run(3, [](int) {}), 0);
}

}  // namespace
}  // namespace waywiser
