#include "waywiser/measure/remote_machine.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "waywiser/base/error.hpp"
#include "waywiser/measure/machine_service.hpp"

namespace waywiser {
namespace {

constexpr Seconds link_patience = 10;

// The error of serve().
std::string failure_of(MachineService& service) {
  try {
    service.serve({});
  } catch (const Error& error) {
    return std::string(name(error.kind())) + ": " + error.what();
  }
  return {};
}

TEST(RemoteMachine, ShowsLifeAgainAndAgain) {
  auto [root, member] = PeerChannel::socket_pair();
  RemoteMachine link(std::move(root), "b", {}, 0.001);
  PeerChannel line(std::move(member));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(line.receive(Deadline::in(link_patience)).first["do"], "alive");
}

TEST(RemoteMachine, TheServiceConnectsWheneverItIsAskedAndEndsWhenItIsDismissed) {
  auto [root, member] = PeerChannel::socket_pair();
  int met = 0, connected = 0;
  MachineService service(std::move(member), "a");
  std::thread rank_1([&] { service.serve({[&] { ++connected; }, {}}); });
  {
    const auto meet = [&] { return ++met, Descriptor(); };
    RemoteMachine link(std::move(root), "b", meet, 0.001);
    link.connect();
    link.connect();
    link.dismiss();
  }
  rank_1.join();
  EXPECT_EQ(met, 2);
  EXPECT_EQ(connected, 2);
}

TEST(RemoteMachine, SaysThatRank1HasEnded) {
  auto [root, member] = PeerChannel::socket_pair();
  const auto meet = []() -> Descriptor { throw Error(ErrorKind::timeout, "nobody came"); };
  RemoteMachine link(std::move(root), "node2", meet, 0.001);
  member = {};
  try {
    link.connect();
    FAIL() << "connected to nobody";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "rank 1 on node2 has ended");
  }
  link.dismiss();
}

TEST(MachineService, SaysThatRank0HasEnded) {
  auto [root, member] = PeerChannel::socket_pair();
  MachineService service(std::move(member), "node1");
  root = {};
  EXPECT_EQ(failure_of(service), "io: rank 0 on node1 has ended, or cannot be reached any more, before it was done");
}

TEST(MachineService, ItsPatienceBeginsAnewWithEverySignOfLife) {
  auto [root, member] = PeerChannel::socket_pair();
  MachineService service(std::move(member), "node1", 0.05);
  PeerChannel line(std::move(root));
  line.send({{"do", "alive"}}, Deadline::in(link_patience));
  EXPECT_EQ(failure_of(service), "timeout: rank 0 on node1 has given no sign of life for 50.0 ms");
}

TEST(MachineService, LetsTheWaitBeInterrupted) {
  auto [root, member] = PeerChannel::socket_pair();
  MachineService service(std::move(member), "node1");
  EXPECT_THROW(service.serve({{}, [] { throw Error(ErrorKind::interrupted, "Ctrl-C"); }}), Error);
}

TEST(MachineService, RefusesWhatIsNoCommand) {
  auto [root, member] = PeerChannel::socket_pair();
  MachineService service(std::move(member), "node1");
  PeerChannel line(std::move(root));
  line.send({{"do", "dance"}}, Deadline::in(link_patience));
  EXPECT_EQ(failure_of(service), "invalid input: message of rank 0: 'dance' is no command");
}

}  // namespace
}  // namespace waywiser
