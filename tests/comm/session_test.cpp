#include "waywiser/comm/session/session.hpp"

#include <gtest/gtest.h>

#include "tests/comm/test_ranks.hpp"

namespace waywiser {
namespace {

TEST(Session, AWaitOutsideOfACallLeavesNoCallBehind) {
  const TestRanks ranks(1);
  const auto session = std::make_shared<Session>(ranks.options(0));
  Call call;
  call.kind = CallKind::wait;
  int looks = 0;
  session->wait(call, [&] { return ++looks == 3; }, [] { return std::string(); });
  EXPECT_EQ(session->current().kind, CallKind::none);
  {
    const InCall in_call(*session, call);
    looks = 0;
    session->wait(call, [&] { return ++looks == 3; }, [] { return std::string(); });
    EXPECT_EQ(session->current().kind, CallKind::wait) << "the call around it goes on";
  }
  EXPECT_EQ(session->current().kind, CallKind::none);
}

// The reason that a rank has sent in its last message is better than the news of its end.
TEST(Session, WhatHasArrivedBeforeAFailureCounts) {
  const TestRanks ranks(1);
  const auto session = std::make_shared<Session>(ranks.options(0));
  Call call;
  call.kind = CallKind::wait;
  constexpr int look_at = 1024;  // every so many turns a wait looks for failures
  int turns = 0;
  const auto arrives_with_the_failure = [&] {
    if (++turns < look_at) return false;
    if (turns == look_at) session->abort("made up");
    return turns > look_at;
  };
  session->wait(call, arrives_with_the_failure, [] { return std::string(); });
  EXPECT_EQ(turns, look_at + 1);
  EXPECT_NE(session->failure().find("made up"), std::string::npos);
}

}  // namespace
}  // namespace waywiser
