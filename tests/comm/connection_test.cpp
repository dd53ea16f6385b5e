#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "waywiser/comm/bootstrap/tcp.hpp"

namespace waywiser {
namespace {

constexpr int between_words = 1;  // s: a rank that waits for another one sends twice in that time
constexpr int known_within = 5;   // s, as the documentation says of a machine that is lost

int option(const Connection& line, int level, int name) {
  int value = 0;
  socklen_t size = sizeof value;
  EXPECT_EQ(::getsockopt(line.number(), level, name, &value, &size), 0);
  return value;
}

// The kernel ends a connection whose other side answers nothing any more: one that sends and one that only listens.
TEST(Connection, ToAMachineThatIsLostEndsInTime) {
  const Descriptor listener = listen_on({});
  const Connection line(connect_to({"127.0.0.1", port_of(listener)}, Deadline::in(10)), 4096);
  const Connection other(accept_one(listener), 4096);
  for (const Connection* each : {&line, &other}) {
    const int unanswered = option(*each, IPPROTO_TCP, TCP_USER_TIMEOUT);
    EXPECT_GT(unanswered, 0);
    EXPECT_LE(unanswered, 1000 * (known_within - between_words));
    EXPECT_EQ(option(*each, SOL_SOCKET, SO_KEEPALIVE), 1);
    EXPECT_LE(option(*each, IPPROTO_TCP, TCP_KEEPIDLE) +
                  option(*each, IPPROTO_TCP, TCP_KEEPINTVL) * option(*each, IPPROTO_TCP, TCP_KEEPCNT),
              known_within);
  }
}

}  // namespace
}  // namespace waywiser
