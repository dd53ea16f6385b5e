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

}  // namespace
}  // namespace waywiser
