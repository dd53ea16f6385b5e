#include "waywiser/comm/bootstrap/meeting.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <filesystem>
#include <functional>
#include <future>

#include "tests/comm/rendezvous_test_base.hpp"
#include "waywiser/comm/bootstrap/join_frame.hpp"
#include "waywiser/comm/bootstrap/meeting_socket.hpp"
#include "waywiser/comm/bootstrap/unix_socket.hpp"

namespace waywiser {
namespace {

namespace fs = std::filesystem;

TEST_F(Rendezvous, EveryRankHearsOfEveryOther) {
  for (int size = 1; size <= 8; ++size) {
    std::vector<std::future<Muster>> ranks;
    for (int rank = size - 1; rank >= 0; --rank) ranks.push_back(come(rank, size));
    for (const Muster& muster : all(std::move(ranks))) {
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

// Faults: forming D
TEST_F(Rendezvous, ARankThatEndsBeforeTheGroupHasFormedIsNamed) {
  auto host = come(launch(0, 3), introduction(launch(0, 3)));
  auto line = std::make_unique<Connection>(visit_root(), 4096);
  line->send(hello_of(2), Deadline::in(10));
  line->send(FrameKind::join, bytes_of(Joining{introduction(launch(2, 3)), branches_of_tree()}), Deadline::in(10));
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
      {[](Introduction& mine) { mine.machine_id = "a"; },
       "rank 1 on here has a WAYWISER_MACHINE, rank 0 has none: either all ranks of a machine have one, or none"},
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
