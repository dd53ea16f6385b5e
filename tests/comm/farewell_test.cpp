#include "waywiser/comm/bootstrap/farewell.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <future>

namespace waywiser {
namespace {

class Farewell : public ::testing::Test {
 protected:
  static constexpr Seconds patience = 20;
  static constexpr std::size_t long_frame = 8 << 20;  // more than a socket holds

  Farewell() {
    const Endpoint here{"127.0.0.1", 0};
    const Descriptor listener = listen_on(here);
    leaving = std::make_unique<Connection>(connect_to({here.host, port_of(listener)}, Deadline::in(patience)), 4096);
    wait_for_socket(listener.number(), POLLIN, Deadline::in(patience));
    other = std::make_unique<Connection>(accept_one(listener), long_frame);
  }

  std::unique_ptr<Connection> leaving, other;
};

TEST_F(Farewell, ComesThoughTheLineIsClosedWithMuchUnread) {
  other->send(FrameKind::share, std::vector<std::byte>(1000), Deadline::in(patience));
  auto leaves = std::async(std::launch::async, [&] {
    leaving->send(FrameKind::table, std::vector<std::byte>(long_frame), Deadline::in(patience));
    say_farewell({leaving.get()}, "there is no room");
    leaving.reset();
  });
  EXPECT_EQ(other->receive(Deadline::in(patience)).kind, FrameKind::table);
  EXPECT_EQ(reason_in(other->receive(Deadline::in(patience))), "there is no room");
  other.reset();
  leaves.get();
}

TEST_F(Farewell, IsFoundBehindWhatCameBefore) {
  leaving->send(FrameKind::share, std::vector<std::byte>(100'000), Deadline::in(patience));
  say_why(*leaving, "there is no room");
  other->set_limit(4096);
  EXPECT_EQ(last_words(*other, 2), "there is no room");
}

TEST_F(Farewell, WhoHasGoneWithoutSaysNothing) {
  leaving.reset();
  EXPECT_EQ(last_words(*other, 2), "");
  say_farewell({other.get()}, "nobody hears this");
}

}  // namespace
}  // namespace waywiser
