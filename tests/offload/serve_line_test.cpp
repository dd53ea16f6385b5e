#include "waywiser/offload/serve_line.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <future>

namespace waywiser {
namespace {

constexpr Seconds line_patience = 20;

std::vector<std::byte> key_of(int value) { return std::vector(32, static_cast<std::byte>(value)); }

std::pair<Descriptor, Descriptor> two_ends() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

// The server's side, in this thread: what it throws, or "".
std::string heard(ServeLine& server, int socket, const std::vector<std::byte>& key) {
  try {
    while (!server.hear_client([&] { return key; }))
      if (!wait_for_socket(socket, POLLIN, Deadline::in(line_patience))) return "nothing has come";
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

// The client's side, in a thread of its own.
std::future<std::string> greeting(ServeLine& client, std::vector<std::byte> key) {
  return std::async(std::launch::async, [&client, key = std::move(key)]() -> std::string {
    try {
      client.greet_server(key, Deadline::in(line_patience));
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  });
}

class ServeLineTest : public testing::Test {
 protected:
  std::pair<Descriptor, Descriptor> ends = two_ends();
  int socket = ends.second.number();
};

TEST_F(ServeLineTest, BothProveTheKeyAndShareASecret) {
  ServeLine client(std::move(ends.first)), server(std::move(ends.second));
  auto said = greeting(client, key_of(1));
  EXPECT_EQ(heard(server, socket, key_of(1)), "");
  EXPECT_EQ(said.get(), "");
  EXPECT_EQ(client.secret().size(), 64u);
  EXPECT_TRUE(equal(client.secret().bytes(), server.secret().bytes()));
  client.send("a question", Deadline::in(line_patience));
  EXPECT_EQ(server.receive(Deadline::in(line_patience)), "a question");
  server.send("an answer", Deadline::in(line_patience));
  EXPECT_EQ(client.receive(Deadline::in(line_patience)), "an answer");
}

TEST_F(ServeLineTest, AnotherKeyIsRefusedInWords) {
  ServeLine client(std::move(ends.first)), server(std::move(ends.second));
  auto said = greeting(client, key_of(1));
  EXPECT_EQ(heard(server, socket, key_of(2)), "a client that does not know the key");
  EXPECT_EQ(said.get(), "the server does not know this key");
}

TEST_F(ServeLineTest, AServerThatProvesNothingIsLeft) {
  ServeLine client(std::move(ends.first));
  Connection server(std::move(ends.second), largest_stranger_frame);
  auto said = greeting(client, key_of(1));
  EXPECT_EQ(server.receive(Deadline::in(line_patience)).kind, FrameKind::hello);
  server.send(FrameKind::challenge, random_nonce(), Deadline::in(line_patience));
  EXPECT_EQ(server.receive(Deadline::in(line_patience)).kind, FrameKind::proof);
  server.send(FrameKind::welcome, random_nonce(), Deadline::in(line_patience));
  EXPECT_EQ(said.get(), "the server does not know this key");
}

TEST_F(ServeLineTest, AStrangerIsRefusedAndHearsNothingOfTheKey) {
  Connection stranger(std::move(ends.first), 4096);
  ServeLine server(std::move(ends.second));
  stranger.send(FrameKind::hello, hello_bytes({protocol_version + 1, 0, {}}), Deadline::in(line_patience));
  bool is_asked = false;
  EXPECT_THROW(server.hear_client([&] {
    is_asked = true;
    return key_of(1);
  }),
               Error);
  EXPECT_FALSE(is_asked);
  const Frame told = stranger.receive(Deadline::in(line_patience));
  EXPECT_EQ(told.kind, FrameKind::refused);
  EXPECT_EQ(reason_in(told), "this server greets by protocol " + std::to_string(protocol_version) + ", the client by " +
                                 std::to_string(protocol_version + 1) + ": install the same version at both");
}

}  // namespace
}  // namespace waywiser
