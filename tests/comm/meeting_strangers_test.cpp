// Who does not know the secret of a job stays outside, and delays nobody.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <deque>
#include <future>
#include <set>
#include <thread>

#include "tests/comm/rendezvous_test_base.hpp"
#include "waywiser/comm/bootstrap/handshake.hpp"
#include "waywiser/comm/bootstrap/join_frame.hpp"
#include "waywiser/comm/bootstrap/meeting.hpp"

namespace waywiser {
namespace {

namespace fs = std::filesystem;

// Opens connections as fast as it can, says nothing on them, and keeps some of them open.
class Flood {
 public:
  explicit Flood(const Endpoint& target) {
    for (std::thread& thread : threads_)
      thread = std::thread([this, target] {
        std::deque<Descriptor> kept;
        const Addresses addresses = resolve(target);
        while (!ending_) {
          Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
          static_cast<void>(!::connect(socket.number(), addresses->ai_addr, addresses->ai_addrlen));
          kept.push_back(std::move(socket));
          if (kept.size() > most_kept) kept.pop_front();
        }
      });
  }
  Flood(const Flood&) = delete;
  Flood& operator=(const Flood&) = delete;
  ~Flood() {
    ending_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  static constexpr std::size_t most_kept = 200;
  std::atomic<bool> ending_{false};
  std::array<std::thread, 2> threads_;
};

// Faults: forming X
TEST_F(Rendezvous, AWrongSecretIsRefusedAndNamed) {
  Endpoint root;
  auto host = come_as_root(2, root);
  Launch stranger = launch_at(root, 1, 2);
  stranger.secret = "another secret, which is wrong";
  EXPECT_EQ(complaint(come(stranger, introduction(stranger))),
            "rank 0 refused this rank: rank 1 has another secret than rank 0");
  come_at(root, 1, 2).get();
  EXPECT_EQ(host.get().ranks.size(), 2u);
}

TEST_F(Rendezvous, WhoMeetAtAnAddressShareAKeyThatOthersHaveNot) {
  std::set<std::uint64_t> keys;
  for (int meeting = 0; meeting < 2; ++meeting) {
    Endpoint root;
    auto host = come_as_root(2, root);
    const std::uint64_t key = come_at(root, 1, 2).get().tag_key;
    EXPECT_EQ(host.get().tag_key, key);
    keys.insert(key);
  }
  EXPECT_EQ(keys.size(), 2u);
  EXPECT_FALSE(keys.contains(0));
}

// Faults: forming X
TEST_F(Rendezvous, ARootWithoutTheSecretIsNotBelieved) {
  const Descriptor listener = listen_on({});
  Launch member = launch(1, 2);
  member.root = Endpoint{"127.0.0.1", port_of(listener)};
  auto future = come(member, introduction(member));
  ASSERT_TRUE(wait_for_socket(listener.number(), POLLIN, Deadline::in(10)));
  Connection line(accept_one(listener), 4096);
  line.receive(Deadline::in(10));
  line.send(FrameKind::challenge, random_nonce(), Deadline::in(10));
  line.receive(Deadline::in(10));
  line.send(FrameKind::welcome, random_nonce(), Deadline::in(10));
  EXPECT_EQ(complaint(std::move(future)), "the process at rank 0's address does not know the secret of this job");
}

// Faults: forming X
TEST_F(Rendezvous, StrangersNeitherStopNorDelayIt) {
  Endpoint address;
  auto host = come_as_root(2, address);
  std::vector<Descriptor> strangers;
  const auto connect = [&]() -> Descriptor& {
    strangers.push_back(connect_to(address, Deadline::in(10)));
    return strangers.back();
  };
  const auto say = [](const Descriptor& socket, std::span<const std::byte> bytes) {
    ASSERT_GT(::send(socket.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL), 0);
  };
  for (int i = 0; i < 20; ++i) connect();  // say nothing
  say(connect(), std::as_bytes(std::span("GET / HTTP/1.1\r\n\r\n")));
  say(connect(), std::as_bytes(std::span("WWG1\x01\xff\xff\xff\xff and more")));        // a huge frame
  say(connect(), std::as_bytes(std::span("WWG1")));                                     // one byte at a time, for ever
  say(connect(), frame_bytes(FrameKind::proof, random_nonce()));                        // not its turn
  say(connect(), frame_bytes(FrameKind::hello, hello_bytes({1, 7, random_nonce()})));   // no such rank
  say(connect(), frame_bytes(FrameKind::hello, hello_bytes({99, 1, random_nonce()})));  // another version
  say(connect(), frame_bytes(FrameKind::hello, hello_of(1).body));                      // and never a proof
  say(connect(), frame_bytes(FrameKind::later, {}));                                    // the root's word
  EXPECT_EQ(come_at(address, 1, 2).get().ranks.size(), 2u);
  EXPECT_EQ(host.get().ranks.size(), 2u);
}

// Faults: strangers F
TEST_F(Rendezvous, RanksComeThroughAFloodOfConnections) {
  Endpoint address;
  auto host = come_as_root(4, address, 60);
  const Flood flood(address);
  std::vector<std::future<Muster>> members;
  for (int rank = 1; rank < 4; ++rank) members.push_back(come_at(address, rank, 4, 60));
  members.push_back(std::move(host));
  for (const Muster& muster : all(std::move(members))) EXPECT_EQ(muster.ranks.size(), 4u);
}

// Faults: strangers F
TEST_F(Rendezvous, TheRootKeepsToItsDeadlineInAFlood) {
  Endpoint address;
  auto host = come_as_root(2, address, 0.5);
  const Flood flood(address);
  ASSERT_EQ(host.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  EXPECT_NE(complaint(std::move(host)).find("1 of 2 ranks did not come to"), std::string::npos);
}

// Faults: strangers F
TEST_F(Rendezvous, WhatFollowsTheProofsIsSealed) {
  Endpoint address;
  auto host = come_as_root(2, address);
  Connection line(connect_to(address, Deadline::in(10)), 4096);
  Handshake words{1, random_nonce(), {}};
  line.send(FrameKind::hello, hello_bytes({protocol_version, 1, words.member}), Deadline::in(10));
  words.root = read_nonce(line.receive(Deadline::in(10)));
  line.send(FrameKind::proof, words.member_proof(launch(1, 2).secret), Deadline::in(10));
  line.receive(Deadline::in(10));
  std::vector<std::byte> forged = frame_bytes(FrameKind::join, bytes_of(Joining{introduction(launch(1, 2))}));
  forged.resize(forged.size() + Seal::mark_bytes);  // who has only watched the proofs cannot know the mark
  ASSERT_EQ(::send(line.number(), forged.data(), forged.size(), MSG_NOSIGNAL), static_cast<ssize_t>(forged.size()));
  line.seal(words.member_seal(launch(1, 2).secret));
  EXPECT_EQ(reason_in(line.receive(Deadline::in(10))),
            "message of a rank: not from the expected sender: its authentication tag is wrong");
  EXPECT_EQ(come_at(address, 1, 2).get().ranks.size(), 2u);
  EXPECT_EQ(host.get().ranks.size(), 2u);
}

}  // namespace
}  // namespace waywiser
