// A stranger has recorded the conversation of a rank with its root, and replays it.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <future>
#include <mutex>
#include <thread>

#include "tests/comm/with_runtime_folder.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/comm/bootstrap/handshake.hpp"
#include "waywiser/comm/bootstrap/join_frame.hpp"
#include "waywiser/comm/bootstrap/machine_connection.hpp"

namespace waywiser {
namespace {

using Words = std::vector<std::byte>;
constexpr Seconds replay_patience = 20;

// Forwards one connection to a root, and keeps the bytes of both sides.
class Relay {
 public:
  explicit Relay(const Endpoint& root) : listener_(listen_on({})), root_(root) {
    here_ = {"127.0.0.1", port_of(listener_)};
    thread_ = std::thread([this] { carry(); });
  }
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;
  ~Relay() {
    ending_ = true;
    thread_.join();
  }

  const Endpoint& here() const noexcept { return here_; }
  Words said_by_member(std::size_t at_least) { return said(0, at_least); }
  Words said_by_root(std::size_t at_least) { return said(1, at_least); }
  void tell_member(const Words& bytes) {
    const std::lock_guard lock(mutex_);
    ASSERT_EQ(::send(ends_[0].number(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }

 private:
  Words said(std::size_t side, std::size_t at_least) {
    for (const Deadline deadline = Deadline::in(replay_patience); !deadline.passed(); std::this_thread::yield()) {
      const std::lock_guard lock(mutex_);
      if (said_[side].size() >= at_least) return said_[side];
    }
    throw Error(ErrorKind::timeout, "less was said");
  }
  void carry() {
    while (!ending_ && !wait_for_socket(listener_.number(), POLLIN, Deadline::in(0.05))) {
    }
    if (ending_) return;
    {
      const std::lock_guard lock(mutex_);
      ends_[0] = accept_one(listener_);
      ends_[1] = connect_to(root_, Deadline::in(replay_patience));
    }
    while (!ending_) {
      std::array<pollfd, 2> ready{{{ends_[0].number(), POLLIN, 0}, {ends_[1].number(), POLLIN, 0}}};
      ::poll(ready.data(), ready.size(), 50);
      for (std::size_t side = 0; side < 2; ++side)
        if (ready[side].revents != 0 && !pass_on(side)) return;
    }
  }
  bool pass_on(std::size_t side) {
    std::array<std::byte, 4096> part{};
    const ssize_t got = ::recv(ends_[side].number(), part.data(), part.size(), MSG_DONTWAIT);
    if (got <= 0) return false;
    const std::lock_guard lock(mutex_);
    said_[side].insert(said_[side].end(), part.begin(), part.begin() + got);
    return ::send(ends_[1 - side].number(), part.data(), static_cast<std::size_t>(got), MSG_NOSIGNAL) == got;
  }

  Descriptor listener_;
  const Endpoint root_;
  Endpoint here_;
  std::mutex mutex_;  // of the following
  std::array<Words, 2> said_;
  std::array<Descriptor, 2> ends_;  // the member, the root
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

// Another process sends the bytes to the listener there. Returns the answer.
std::string answer_to(const Words& words, const Endpoint& listener) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) throw Error(ErrorKind::io, "pipe: " + last_system_error());
  const pid_t stranger = ::fork();
  if (stranger == 0) {
    const Descriptor line = connect_to(listener, Deadline::in(replay_patience));
    static_cast<void>(!::send(line.number(), words.data(), words.size(), MSG_NOSIGNAL));
    std::array<char, 4096> part{};
    while (wait_for_socket(line.number(), POLLIN, Deadline::in(replay_patience))) {
      const ssize_t got = ::recv(line.number(), part.data(), part.size(), 0);
      if (got <= 0 || ::write(ends[1], part.data(), static_cast<std::size_t>(got)) != got) break;
    }
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string heard;
  std::array<char, 4096> part{};
  for (ssize_t got = 0; (got = ::read(ends[0], part.data(), part.size())) > 0;)
    heard.append(part.data(), static_cast<std::size_t>(got));
  ::close(ends[0]);
  ::waitpid(stranger, nullptr, 0);
  return heard;
}

class Replay : public WithRuntimeFolder {
 protected:
  static Launch launch(int rank, int size, std::optional<Endpoint> root) {
    return {"test", rank, size, "test-job", std::move(root), "a secret of the test"};
  }
  static Introduction introduction(int rank, int size) {
    Introduction mine = introduce(launch(rank, size, {}));
    mine.address.resize(100, static_cast<std::byte>(rank));
    return mine;
  }
  static std::future<Muster> come_as_root(int size, Endpoint& root) {
    auto listens = std::make_shared<std::promise<Endpoint>>();
    auto future = std::async(std::launch::async, [=] {
      const auto announce = [&](const Endpoint& here) { listens->set_value(here); };
      return meet(launch(0, size, Endpoint{}), introduction(0, size), Deadline::in(replay_patience), announce);
    });
    root = listens->get_future().get();
    return future;
  }
  static std::future<Muster> come(int rank, int size, const Endpoint& root) {
    return std::async(std::launch::async, [=] {
      return meet(launch(rank, size, root), introduction(rank, size), Deadline::in(replay_patience));
    });
  }
  // The frames of a rank until it has joined: hello, proof, and introduction with a mark.
  static std::size_t length_of_joining(int rank, int size) {
    return frame_bytes(FrameKind::hello, hello_bytes({})).size() + frame_bytes(FrameKind::proof, Digest{}).size() +
           frame_bytes(FrameKind::join, bytes_of(Joining{introduction(rank, size)})).size() + Seal::mark_bytes;
  }
  static void expect_refused(const Words& words, const Endpoint& root) {
    EXPECT_NE(answer_to(words, root).find("rank 1 has another secret than rank 0"), std::string::npos);
  }
};

// Faults: strangers Y
TEST_F(Replay, OfAMemberIsNoMemberOfTheSameJobOrOfAnother) {
  Endpoint root;
  auto host = come_as_root(3, root);
  Relay relay(root);
  auto first = come(1, 3, relay.here());
  const Words recorded = relay.said_by_member(length_of_joining(1, 3));
  expect_refused(recorded, root);
  auto second = come(2, 3, root);
  const Muster at_first = first.get(), at_second = second.get(), at_host = host.get();
  EXPECT_EQ(at_first.ranks.size(), 3u);
  EXPECT_EQ(at_second.tag_key, at_host.tag_key);

  auto next_host = come_as_root(3, root);
  expect_refused(recorded, root);
  auto next_first = come(1, 3, root), next_second = come(2, 3, root);
  const Muster next_at_first = next_first.get(), next_at_second = next_second.get(), next_at_host = next_host.get();
  EXPECT_EQ(next_at_host.ranks.size(), 3u);
  EXPECT_EQ(next_at_first.tag_key, next_at_second.tag_key);
}

// Faults: strangers Y
TEST_F(Replay, OfARootIsNotBelieved) {
  Endpoint root;
  auto host = come_as_root(2, root);
  Relay relay(root);
  come(1, 2, relay.here()).get();
  host.get();
  const Words recorded = relay.said_by_root(1);
  const Descriptor listener = listen_on({});
  auto member = come(1, 2, {"127.0.0.1", port_of(listener)});
  ASSERT_TRUE(wait_for_socket(listener.number(), POLLIN, Deadline::in(replay_patience)));
  const Descriptor line = accept_one(listener);
  ASSERT_GT(::send(line.number(), recorded.data(), recorded.size(), MSG_NOSIGNAL), 0);
  try {
    member.get();
    FAIL() << "a stranger was taken for rank 0";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "the process at rank 0's address does not know the secret of this job");
  }
}

// The later messages of two machines that are measured.
// Faults: strangers Y
TEST_F(Replay, OfAnOrderBetweenMachinesIsNotObeyed) {
  const Endpoint root{"127.0.0.1", port_of(listen_on({}))};  // no longer listening
  Relay relay(root);
  auto member = std::async(std::launch::async, [&] {
    return meet_other_machine(launch(1, 2, relay.here()), Deadline::in(replay_patience));
  });
  PeerChannel orders(meet_other_machine(launch(0, 2, root), Deadline::in(replay_patience)).line);
  PeerChannel obeys(member.get().line);
  const std::size_t before = relay.said_by_root(1).size();
  orders.send({{"do", "connect"}}, Deadline::in(replay_patience));
  EXPECT_EQ(obeys.receive(Deadline::in(replay_patience)).first["do"], "connect");
  const Words all = relay.said_by_root(before + 1);
  relay.tell_member({all.begin() + static_cast<std::ptrdiff_t>(before), all.end()});
  try {
    obeys.receive(Deadline::in(replay_patience));
    FAIL() << "an order was obeyed twice";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "message from the peer process: not from the expected sender: its authentication tag is wrong");
  }
}

}  // namespace
}  // namespace waywiser
