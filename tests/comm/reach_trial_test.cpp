#include "waywiser/comm/shared_memory/reach_trial.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include "waywiser/comm/shared_memory/shm_space.hpp"

namespace waywiser {
namespace {

Introduction offering(const std::string& offer) {
  Introduction other;
  other.process = static_cast<std::uint64_t>(::getpid());
  other.reach = offer;
  return other;
}

TEST(ReachTrial, APartOfThisProcessIsReached) {
  const ReachTrial trial;
  const Reach reach = ReachTrial::of(offering(trial.offer()));
  EXPECT_TRUE(reach.files && reach.copies) << reach.why_not;
}

// As in another PID namespace, where the number of the process names another one.
TEST(ReachTrial, AnotherTokenIsAnotherProcess) {
  const ReachTrial trial, other;
  const std::string token = other.offer().substr(other.offer().rfind(' '));
  const Reach reach = ReachTrial::of(offering(trial.offer().substr(0, trial.offer().rfind(' ')) + token));
  EXPECT_FALSE(reach.files || reach.copies);
  EXPECT_NE(reach.why_not.find("is another file here"), std::string::npos) << reach.why_not;
}

TEST(ReachTrial, WhatIsNotThereIsNotReached) {
  for (const char* offer : {"", "x", "-1 0 0", "1048575 4096 00", "999999999999 1 1"}) {
    const Reach reach = ReachTrial::of(offering(offer));
    EXPECT_FALSE(reach.files || reach.copies) << offer;
    EXPECT_FALSE(reach.why_not.empty()) << offer;
  }
}

TEST(ShmGuard, IsNotDueBeforeItWatches) {
  ShmGuard guard;
  guard.note(1u << 31);
  EXPECT_FALSE(guard.is_due());
  guard.watch(1);
  EXPECT_TRUE(guard.is_due());
}

TEST(ShmGuard, TellsThatThereIsTooLittleRoom) {
  ShmGuard guard;
  guard.watch(1u << 31);
  EXPECT_NE(guard.look().find("bytes free, and UCX may need"), std::string::npos);
  EXPECT_FALSE(guard.is_due());  // once
}

}  // namespace
}  // namespace waywiser
