// Failures on a GPU are reported, also those that no poll has seen when the process ends.
#include "waywiser/comm/session/watchdog.hpp"

#include <gtest/gtest.h>

#include <atomic>

#include "tests/comm/rendezvous_test_base.hpp"
#include "waywiser/comm/session/lifeline.hpp"

namespace waywiser {
namespace {

class WatchdogReport : public Rendezvous {};

struct FailingWard : Watchdog::Ward {
  std::optional<Error> failure(const std::string&) const override {
    return fails ? std::optional<Error>({ErrorKind::io, "it has failed"}) : std::nullopt;
  }
  bool is_gone() const override { return true; }
  void stop() noexcept override {}
  void settle() override {}
  void let_go() noexcept override {}
  std::atomic<bool> fails = false;
};

TEST_F(WatchdogReport, SaysOnceWhatFailedJustBeforeTheEnd) {
  Lifeline line(0, meet(launch(0, 1), introduction(launch(0, 1)), Deadline::in(20)),
                Lifeline::Callbacks{[] { return std::string(); }});
  FailingWard ward;
  Watchdog watchdog(line, OnFailure::raise);
  watchdog.add(ward);
  testing::internal::CaptureStderr();
  watchdog.report();
  ward.fails = true;
  watchdog.report();
  watchdog.report();
  watchdog.remove(ward);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "waywiser: it has failed\n");
  ASSERT_NE(line.failure(), nullptr);
  EXPECT_EQ(*line.failure(), "it has failed");
}

}  // namespace
}  // namespace waywiser
