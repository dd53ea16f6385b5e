#include "waywiser/comm/bootstrap/meeting.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <deque>
#include <filesystem>
#include <functional>
#include <future>
#include <set>
#include <thread>

#include "tests/comm/with_runtime_folder.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/comm/bootstrap/handshake.hpp"
#include "waywiser/comm/bootstrap/meeting_socket.hpp"
#include "waywiser/comm/bootstrap/unix_socket.hpp"

namespace waywiser {
namespace {

namespace fs = std::filesystem;

class Rendezvous : public WithRuntimeFolder {
 protected:
  static Launch launch(int rank, int size) { return {"test", rank, size, "test-job", {}, "a secret of the test"}; }
  static Introduction introduction(const Launch& launch) {
    Introduction mine{static_cast<std::uint32_t>(launch.rank),
                      static_cast<std::uint32_t>(launch.size),
                      "1",
                      "plan",
                      "",
                      "here",
                      1,
                      {},
                      false,
                      "",
                      ""};
    mine.ucx = launch.rank == 0 ? "1.13.1" : "1.13.2";
    mine.address.resize(100, static_cast<std::byte>(launch.rank));
    return mine;
  }
  static std::future<Muster> come(const Launch& launch, const Introduction& mine, Seconds patience = 20) {
    return std::async(std::launch::async, [=] { return meet(launch, mine, Deadline::in(patience)); });
  }
  static std::future<Muster> come(int rank, int size) {
    return come(launch(rank, size), introduction(launch(rank, size)));
  }
  static std::string complaint(std::future<Muster> future) {
    try {
      future.get();
    } catch (const Error& error) {
      return error.what();
    }
    return "no complaint";
  }
  // Rank 0 at an address, where it listens as soon as this returns.
  static std::future<Muster> come_as_root(int size, Endpoint& root, Seconds patience = 20) {
    auto listens = std::make_shared<std::promise<Endpoint>>();
    auto future = std::async(std::launch::async, [=] {
      const auto announce = [&](const Endpoint& here) { listens->set_value(here); };
      return meet(launch_at({}, 0, size), introduction(launch(0, size)), Deadline::in(patience), announce);
    });
    root = listens->get_future().get();
    return future;
  }
  static Launch launch_at(const Endpoint& root, int rank, int size) {
    Launch at = launch(rank, size);
    at.root = root;
    return at;
  }
  static std::future<Muster> come_at(const Endpoint& root, int rank, int size, Seconds patience = 20) {
    return come(launch_at(root, rank, size), introduction(launch(rank, size)), patience);
  }
  // Connects to the socket of the job as soon as rank 0 listens.
  static Descriptor visit_root() {
    for (const Deadline deadline = Deadline::in(10); !deadline.passed(); std::this_thread::yield())
      if (Descriptor line = connect_at(meeting_path("test-job")); line.open()) return line;
    throw Error(ErrorKind::timeout, "there is no rank 0");
  }
  static Frame hello_of(int rank) {
    return {FrameKind::hello, hello_bytes({protocol_version, static_cast<std::uint32_t>(rank), random_nonce()})};
  }
};

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

TEST_F(Rendezvous, EveryRankHearsOfEveryOther) {
  for (int size = 1; size <= 8; ++size) {
    std::vector<std::future<Muster>> ranks;
    for (int rank = size - 1; rank >= 0; --rank) ranks.push_back(come(rank, size));
    for (auto& future : ranks) {
      const Muster muster = future.get();
      ASSERT_EQ(muster.ranks.size(), static_cast<std::size_t>(size));
      for (const Introduction& other : muster.ranks)
        EXPECT_EQ(other.address, introduction(launch(static_cast<int>(other.rank), size)).address);
    }
    EXPECT_TRUE(fs::is_empty(folder_));
  }
}

TEST_F(Rendezvous, AtAnAddressThatIsGiven) {
  const Endpoint address{"localhost", port_of(listen_on({}))};  // nobody listens there any more
  Launch first = launch(0, 2), second = launch(1, 2);
  first.root = second.root = address;
  auto member = come(second, introduction(second));  // it waits until rank 0 listens
  auto host = come(first, introduction(first));
  EXPECT_EQ(member.get().ranks.size(), 2u);
  EXPECT_EQ(host.get().lines.size(), 1u);
}

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
  for (auto& member : members) EXPECT_EQ(member.get().ranks.size(), 4u);
  EXPECT_EQ(host.get().ranks.size(), 4u);
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
  WireWriter join;
  write(join, introduction(launch(1, 2)));
  std::vector<std::byte> forged = frame_bytes(FrameKind::join, join.bytes());
  forged.resize(forged.size() + Seal::mark_bytes);  // who has only watched the proofs cannot know the mark
  ASSERT_EQ(::send(line.number(), forged.data(), forged.size(), MSG_NOSIGNAL), static_cast<ssize_t>(forged.size()));
  line.seal(words.member_seal(launch(1, 2).secret));
  EXPECT_EQ(reason_in(line.receive(Deadline::in(10))),
            "message of a rank: not from the expected sender: its authentication tag is wrong");
  EXPECT_EQ(come_at(address, 1, 2).get().ranks.size(), 2u);
  EXPECT_EQ(host.get().ranks.size(), 2u);
}

// Faults: forming D
TEST_F(Rendezvous, ARankThatEndsBeforeTheGroupHasFormedIsNamed) {
  auto host = come(launch(0, 3), introduction(launch(0, 3)));
  auto line = std::make_unique<Connection>(visit_root(), 4096);
  line->send(hello_of(2), Deadline::in(10));
  WireWriter join;
  write(join, introduction(launch(2, 3)));
  line->send(FrameKind::join, join.bytes(), Deadline::in(10));
  EXPECT_EQ(line->receive(Deadline::in(10)).kind, FrameKind::welcome);
  line.reset();
  EXPECT_EQ(complaint(std::move(host)), "rank 2 while the group formed: it has ended");
}

// Faults: forming W
TEST_F(Rendezvous, WhatDiffersIsNamedEverywhere) {
  using Change = std::function<void(Introduction&)>;
  const std::pair<Change, std::string> cases[] = {
      {[](Introduction& mine) { mine.plan = "other"; }, "rank 1 on here follows plan other, rank 0 plan"},
      {[](Introduction& mine) { mine.version = "2"; }, "rank 1 on here has Waywiser 2, rank 0 1"},
      {[](Introduction& mine) { mine.ucx = "1.22.0"; },
       "rank 1 on here has UCX 1.22.0, rank 0 1.13.1: WAYWISER_LIBUCP names the one to use"},
      {[](Introduction& mine) { mine.size = 3; }, "rank 1 on here counts 3 ranks, rank 0 2"},
  };
  for (const auto& [change, words] : cases) {
    Introduction odd = introduction(launch(1, 2));
    change(odd);
    auto host = come(launch(0, 2), introduction(launch(0, 2)));
    EXPECT_EQ(complaint(come(launch(1, 2), odd)), "rank 0 refused this rank: " + words);
    EXPECT_EQ(complaint(std::move(host)), words);
  }
}

// Faults: forming S
TEST_F(Rendezvous, MissingRanksAreNamed) {
  auto host = come(launch(0, 4), introduction(launch(0, 4)), 0.3);
  auto second = come(launch(2, 4), introduction(launch(2, 4)));
  EXPECT_NE(complaint(std::move(host)).find("2 of 4 ranks did not come to " + folder_.string()), std::string::npos);
  EXPECT_NE(complaint(std::move(second)).find("in time: 1, 3"), std::string::npos);
}

// Faults: forming S
TEST_F(Rendezvous, WhoCameBeforeRank0HearsFromItWhoIsMissing) {
  auto host = come(launch(0, 3), introduction(launch(0, 3)), 0.8);
  auto second = come(launch(2, 3), introduction(launch(2, 3)), 0.4);
  EXPECT_NE(complaint(std::move(second)).find("rank 0 refused this rank: 1 of 3 ranks did not come to"),
            std::string::npos);
  EXPECT_NE(complaint(std::move(host)).find("1 of 3 ranks did not come to"), std::string::npos);
}

// Faults: strangers K
TEST_F(Rendezvous, ASocketOfAJobThatWasKilledIsPassedBy) {
  static_cast<void>(listen_at(meeting_path("test-job")));  // nobody listens any more
  auto member = come(1, 2);
  auto host = come(0, 2);
  EXPECT_EQ(member.get().ranks.size(), 2u);
}

// Faults: strangers P
TEST_F(Rendezvous, ARootThatWasStoppedIsLeftForItsSuccessor) {
  const Descriptor silent = listen_at(meeting_path("test-job"));
  auto member = come(1, 2);
  ASSERT_TRUE(wait_for_socket(silent.number(), POLLIN, Deadline::in(10)));  // the member waits for an answer
  auto host = come(0, 2);
  EXPECT_EQ(member.get().ranks.size(), 2u);
}

TEST_F(Rendezvous, WhoAnswersOtherwiseIsLeftForARealRoot) {
  const Descriptor other = listen_at(meeting_path("test-job"));
  auto member = come(1, 2);
  ASSERT_TRUE(wait_for_socket(other.number(), POLLIN, Deadline::in(10)));
  const Descriptor line = accept_one(other);
  const std::string words = "SSH-2.0-OpenSSH_9.2\r\n";
  ASSERT_GT(::send(line.number(), words.data(), words.size(), MSG_NOSIGNAL), 0);
  auto host = come(0, 2);
  EXPECT_EQ(member.get().ranks.size(), 2u);
}

TEST_F(Rendezvous, TheNameOfANewerJobStays) {
  auto older = std::make_unique<MeetingSocket>("test-job");
  const MeetingSocket newer("test-job");
  older.reset();
  EXPECT_TRUE(connect_at(meeting_path("test-job")).open());
}

TEST_F(Rendezvous, ANameMayBeLongerThanThatOfASocket) {
  const fs::path deep = folder_ / std::string(100, 'a') / std::string(100, 'b');
  fs::create_directories(deep);
  fs::permissions(deep, fs::perms::owner_all);
  ::setenv("WAYWISER_RUNTIME_DIR", deep.c_str(), 1);
  auto member = come(1, 2);
  auto host = come(0, 2);
  EXPECT_EQ(member.get().ranks.size(), 2u);
  EXPECT_EQ(host.get().ranks.size(), 2u);
}

// Faults: strangers X
TEST_F(Rendezvous, ARuntimeFolderOpenToOthersIsRefused) {
  fs::permissions(folder_, fs::perms::others_read, fs::perm_options::add);
  const std::string words = complaint(come(0, 2));
  EXPECT_NE(words.find("nobody else can enter"), std::string::npos);
  EXPECT_NE(words.find("WAYWISER_RUNTIME_DIR names another one"), std::string::npos);
}

}  // namespace
}  // namespace waywiser
