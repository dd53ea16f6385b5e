#include "waywiser/comm/session/session.hpp"

#include <gtest/gtest.h>

#include "tests/comm/test_ranks.hpp"
#include "waywiser/comm/session/in_call.hpp"

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

// Whoever hears of the failure first in this rank: the life-line, a broken connection, a question while it waits.
TEST(Session, AWaitThatATimeoutOfAnotherRankEndsSaysHowLongItWas) {
  const TestRanks ranks(1);
  JoinOptions options = ranks.options(0);
  std::shared_ptr<Session> session;
  bool is_time = false;
  options.interrupted = [&] {
    if (is_time) session->abort("waited 2.00 s in recv");
    return false;
  };
  session = std::make_shared<Session>(options);
  Call call;
  call.kind = CallKind::wait;
  const Deadline unusual = Deadline::in(0.6);
  const auto never_done = [&] {
    is_time = unusual.passed();
    return false;
  };
  try {
    session->wait(call, never_done, [] { return std::string("nothing has come"); });
    FAIL() << "it waited for nothing";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_NE(std::string(error.what()).find("; rank 0 itself had waited "), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find(": nothing has come"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace waywiser
