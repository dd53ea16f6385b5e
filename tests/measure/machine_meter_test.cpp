#include "waywiser/measure/machine_meter.hpp"

#include <gtest/gtest.h>

#include <csignal>

#include "tests/measure/made_up_meter.hpp"

namespace waywiser {
namespace {

// The measurement is continued after a stop during each of its first samples.
class StoppedMeter : public made_up::MadeUpMeter {
 public:
  explicit StoppedMeter(int stops, bool fails = false) : stops_(stops), fails_(fails) {
    links["a"] = {[](double) { return 1e-6; }};
  }
  Sample take(const Path& path, Operation operation, Bytes bytes, int repetitions) override {
    Sample sample = MadeUpMeter::take(path, operation, bytes, repetitions);
    if (stops_-- <= 0) return sample;
    ::raise(SIGCONT);
    if (fails_) throw Error(ErrorKind::timeout, "waited too long");
    return sample;
  }

 private:
  int stops_;
  bool fails_;
};

Sample sample_of(int stops, bool fails, int& taken) {
  auto inner = std::make_unique<StoppedMeter>(stops, fails);
  StoppedMeter& seen = *inner;
  MachineMeter meter(std::move(inner), nullptr);
  const Sample sample = meter.take(made_up::gpu_path("a"), Operation::latency, 8, 1);
  taken = seen.taken["a latency 8"];
  return sample;
}

TEST(MachineMeter, ASampleDuringWhichTheProcessWasStoppedIsTakenAgain) {
  int taken = 0;
  EXPECT_NE(sample_of(1, false, taken).disturbed, "the process was stopped");
  EXPECT_GE(taken, 2);
  EXPECT_NE(sample_of(1, true, taken).disturbed, "the process was stopped");
  EXPECT_GE(taken, 2);
}

TEST(MachineMeter, WhatIsDisturbedAgainAndAgainIsMarked) {
  int taken = 0;
  EXPECT_EQ(sample_of(1000, false, taken).disturbed, "the process was stopped");
  EXPECT_EQ(taken, 3);
  EXPECT_THROW(sample_of(1000, true, taken), Error);
}

}  // namespace
}  // namespace waywiser
