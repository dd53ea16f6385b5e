#include "waywiser/transport/tls/tls_connection.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <numeric>
#include <thread>
#include <vector>

#include "waywiser/base/error.hpp"
#include "waywiser/base/units.hpp"

namespace waywiser {
namespace {

constexpr Seconds connection_patience = 20;

TlsKey key_of(int number) {
  TlsKey key{};
  key.front() = static_cast<std::byte>(number);
  return key;
}

std::pair<Descriptor, Descriptor> two_sockets() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

// Advances both ends until one of them throws or `done` holds.
template <typename Done>
void turns(Done done) {
  const Deadline deadline = Deadline::in(connection_patience);
  while (!done())
    if (deadline.passed()) throw Error(ErrorKind::timeout, "the two ends do not come to an end");
}

class TlsConnectionTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!ssl_library().usable()) GTEST_SKIP() << ssl_library().why_not();
  }
  void connect(const TlsContext& one, const TlsContext& other) {
    auto [a, b] = two_sockets();
    client_ = std::make_unique<TlsConnection>(one, std::move(a), TlsSide::client);
    server_ = std::make_unique<TlsConnection>(other, std::move(b), TlsSide::server);
    turns([&] {
      const bool client = client_->handshake();
      return server_->handshake() && client;
    });
  }
  std::unique_ptr<TlsConnection> client_, server_;
};

TEST_F(TlsConnectionTest, CarriesBytesBothWays) {
  const TlsContext context(key_of(1));
  connect(context, context);
  std::vector<std::byte> sent(3'000'001), got(sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(i * 7 + i / 251);
  for (auto* from : {client_.get(), server_.get()}) {
    auto* to = from == client_.get() ? server_.get() : client_.get();
    std::ranges::fill(got, std::byte{});
    std::size_t out = 0, in = 0;
    turns([&] {
      out += from->write(std::span(sent).subspan(out));
      in += to->read(std::span(got).subspan(in));
      return in == got.size();
    });
    EXPECT_EQ(out, sent.size());
    EXPECT_EQ(sent, got);
  }
}

TEST_F(TlsConnectionTest, BytesOnTheWireAreNotThoseOfTheMessage) {
  const TlsContext context(key_of(1));
  auto [a, wire_a] = two_sockets();
  auto [wire_b, b] = two_sockets();
  TlsConnection client(context, std::move(a), TlsSide::client), server(context, std::move(b), TlsSide::server);
  std::string seen;
  const auto pass = [&seen](const Descriptor& from, const Descriptor& to) {
    std::array<char, 4096> buffer{};
    const auto got = ::recv(from.number(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got <= 0) return;
    seen.append(buffer.data(), static_cast<std::size_t>(got));
    ASSERT_EQ(::send(to.number(), buffer.data(), static_cast<std::size_t>(got), MSG_NOSIGNAL), got);
  };
  const std::string secret = "a sum that nobody else may read";
  std::string came(secret.size(), '\0');
  std::size_t in = 0, out = 0;
  turns([&] {
    pass(wire_a, wire_b);
    pass(wire_b, wire_a);
    const bool ready = client.handshake();
    if (!server.handshake() || !ready) return false;
    out += client.write(std::as_bytes(std::span(secret)).subspan(out));
    in += server.read(std::as_writable_bytes(std::span(came)).subspan(in));
    return in == came.size();
  });
  EXPECT_EQ(came, secret);
  EXPECT_EQ(seen.find("nobody"), std::string::npos);
  EXPECT_GT(seen.size(), secret.size());
}

TEST_F(TlsConnectionTest, AnotherKeyIsRefused) {
  const TlsContext ours(key_of(1)), theirs(key_of(2));
  EXPECT_THROW(connect(ours, theirs), Error);
}

TEST_F(TlsConnectionTest, AStrangersBytesAreRefused) {
  const TlsContext context(key_of(1));
  auto [a, b] = two_sockets();
  TlsConnection server(context, std::move(b), TlsSide::server);
  const std::string noise(4000, 'x');
  ASSERT_GT(::send(a.number(), noise.data(), noise.size(), MSG_NOSIGNAL), 0);
  EXPECT_THROW(turns([&] { return server.handshake(); }), Error);
}

TEST_F(TlsConnectionTest, ChangedBytesAreRefused) {
  const TlsContext context(key_of(1));
  auto [a, wire_a] = two_sockets();
  auto [wire_b, b] = two_sockets();
  TlsConnection client(context, std::move(a), TlsSide::client), server(context, std::move(b), TlsSide::server);
  bool change = false;
  const auto pass = [&change](const Descriptor& from, const Descriptor& to) {
    std::array<char, 4096> buffer{};
    const auto got = ::recv(from.number(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got <= 0) return;
    if (change) buffer[static_cast<std::size_t>(got) / 2] ^= 1;
    ASSERT_EQ(::send(to.number(), buffer.data(), static_cast<std::size_t>(got), MSG_NOSIGNAL), got);
  };
  turns([&] {
    pass(wire_a, wire_b);
    pass(wire_b, wire_a);
    const bool ready = client.handshake();
    return server.handshake() && ready;
  });
  change = true;
  std::vector<std::byte> data(100), got(100);
  ASSERT_EQ(client.write(data), data.size());
  pass(wire_a, wire_b);
  EXPECT_THROW(turns([&] { return server.read(got) != 0; }), Error);
}

TEST_F(TlsConnectionTest, APeerThatHasGoneIsAnErrorAndNoSignal) {
  const TlsContext context(key_of(1));
  connect(context, context);
  server_.reset();
  std::vector<std::byte> data(1 << 20);
  EXPECT_THROW(turns([&] {
                 client_->write(data);
                 return false;
               }),
               Error);
  std::array<std::byte, 8> got{};
  EXPECT_THROW(static_cast<void>(client_->read(got)), Error);
}

}  // namespace
}  // namespace waywiser
