#include "waywiser/comm/rendezvous.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <future>
#include <thread>

#include "tests/comm/with_runtime_folder.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/comm/handshake.hpp"
#include "waywiser/comm/runtime_folder.hpp"

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
                      "",
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
  // Where rank 0 listens, as soon as it does.
  static Endpoint root() {
    for (const Deadline deadline = Deadline::in(10); !deadline.passed(); std::this_thread::yield())
      if (const auto meeting = MeetingFile::read("test-job")) return {"127.0.0.1", meeting->port};
    throw Error(ErrorKind::timeout, "there is no rank 0");
  }
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

TEST_F(Rendezvous, AWrongSecretIsRefusedAndNamed) {
  auto host = come(launch(0, 2), introduction(launch(0, 2)));
  Launch stranger = launch(1, 2);
  stranger.secret = "another secret, which is wrong";
  EXPECT_EQ(complaint(come(stranger, introduction(stranger))),
            "rank 0 refused this rank: rank 1 has another secret than rank 0");
  come(1, 2).get();
  EXPECT_EQ(host.get().ranks.size(), 2u);
}

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
  EXPECT_EQ(complaint(std::move(future)), "what listens at rank 0's address does not know the secret of this job");
}

TEST_F(Rendezvous, StrangersNeitherStopNorDelayIt) {
  auto host = come(launch(0, 2), introduction(launch(0, 2)));
  const Endpoint address = root();
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
  say(connect(), frame_bytes(FrameKind::hello, hello_bytes({1, 1, random_nonce()})));   // and never a proof
  EXPECT_EQ(come(1, 2).get().ranks.size(), 2u);
  EXPECT_EQ(host.get().ranks.size(), 2u);
}

TEST_F(Rendezvous, ARankThatEndsBeforeTheGroupHasFormedIsNamed) {
  auto host = come(launch(0, 3), introduction(launch(0, 3)));
  Connection line(connect_to(root(), Deadline::in(10)), 4096);
  Handshake words{2, random_nonce(), {}};
  line.send(FrameKind::hello, hello_bytes({protocol_version, 2, words.member}), Deadline::in(10));
  words.root = read_nonce(line.receive(Deadline::in(10)));
  line.send(FrameKind::proof, words.member_proof(launch(2, 3).secret), Deadline::in(10));
  line.receive(Deadline::in(10));
  WireWriter join;
  write(join, introduction(launch(2, 3)));
  line.send(FrameKind::join, join.bytes(), Deadline::in(10));
  line = Connection(Descriptor(), 1);
  EXPECT_EQ(complaint(std::move(host)), "rank 2 while the group formed: it has ended");
}

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

TEST_F(Rendezvous, MissingRanksAreNamed) {
  auto host = come(launch(0, 4), introduction(launch(0, 4)), 0.3);
  auto second = come(launch(2, 4), introduction(launch(2, 4)));
  EXPECT_NE(complaint(std::move(host)).find("2 of 4 ranks did not come to 127.0.0.1:"), std::string::npos);
  EXPECT_NE(complaint(std::move(second)).find("in time: 1, 3"), std::string::npos);
}

TEST_F(Rendezvous, AFileOfAJobThatWasKilledIsPassedBy) {
  const MeetingFile stale("test-job", {1, "x"});  // nobody listens on port 1
  auto member = come(1, 2);
  auto host = come(0, 2);
  EXPECT_EQ(member.get().ranks.size(), 2u);
}

TEST_F(Rendezvous, ARuntimeFolderOpenToOthersIsRefused) {
  fs::permissions(folder_, fs::perms::others_read, fs::perm_options::add);
  EXPECT_NE(complaint(come(0, 2)).find("nobody else can enter"), std::string::npos);
}

}  // namespace
}  // namespace waywiser
