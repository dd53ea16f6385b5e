#include "waywiser/comm/bootstrap/job_network.hpp"

#include <gtest/gtest.h>

#include <map>

#include "tests/comm/with_variable.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/comm/bootstrap/root_network.hpp"

namespace waywiser {
namespace {

const std::string all_local = "self,posix,cma,xpmem";

Launch of_one_machine() { return {"test", 0, 2, "job", {}, ""}; }

Launch at(const std::string& root) {
  Launch launch = of_one_machine();
  launch.root = parse_endpoint(root);
  return launch;
}

std::map<std::string, std::string> settings(const Launch& launch) {
  const auto chosen = job_network(launch, nullptr).settings;
  return {chosen.begin(), chosen.end()};
}

using Settings = std::map<std::string, std::string>;

TEST(JobNetwork, WithinAMachineUcxHasNone) {
  const WithVariable not_named("UCX_TLS", "");
  EXPECT_EQ(settings(of_one_machine()), (Settings{{"TLS", all_local}}));
  EXPECT_EQ(settings(at("127.0.0.1:4711")), (Settings{{"TLS", all_local}}));
  EXPECT_EQ(settings(at("[::1]:4711")), (Settings{{"TLS", all_local}}));
  EXPECT_EQ(settings({}), (Settings{{"TLS", "self"}}));  // alone
}

TEST(JobNetwork, WhatTheUserLeavesOutIsLeftOutOfThat) {
  const WithVariable excluded("UCX_TLS", "^cma,cuda");
  EXPECT_EQ(settings(of_one_machine()), (Settings{{"TLS", "self,posix,xpmem"}}));
  EXPECT_EQ(local_transports("^sm"), "self");
}

TEST(JobNetwork, WhatTheUserNamesIsUsedAndANetworkIsTold) {
  {
    const WithVariable named("UCX_TLS", "tcp,self");
    const JobNetwork network = job_network(of_one_machine(), nullptr);
    EXPECT_TRUE(network.settings.empty());
    EXPECT_EQ(network.note, "UCX_TLS=tcp,self lets UCX listen on networks, which this job does not need");
  }
  const WithVariable named("WAYWISER_UCX_TLS", "self,sm,cuda_ipc");
  EXPECT_TRUE(job_network(of_one_machine(), nullptr).settings.empty());
  EXPECT_EQ(job_network(of_one_machine(), nullptr).note, "");
}

TEST(JobNetwork, BetweenMachinesItIsThatOfTheRoot) {
  const WithVariable not_named("UCX_TLS", "");
  Launch apart = at("127.0.0.1:4711");
  apart.machine = "another";
  const std::string loopback = interface_towards({});
  EXPECT_EQ(settings(apart), (Settings{{"TLS", "^sysv,cuda"}, {"NET_DEVICES", loopback}}));
  const WithVariable transports("UCX_TLS", "tcp,self");
  EXPECT_EQ(settings(apart).count("TLS"), 0u);
  EXPECT_TRUE(settings(apart)["NET_DEVICES"].starts_with(loopback));
  const WithVariable devices("UCX_NET_DEVICES", "eth7");
  EXPECT_TRUE(settings(apart).empty());
}

LocalWays split() { return {"ranks 0 and 1 do not reach each other's memory", false}; }
LocalWays small_shm() {
  LocalWays ways;
  ways.why_no_shm = "/dev/shm has 7 bytes free";
  return ways;
}

std::map<std::string, std::string> settings(const Launch& launch, const LocalWays& ways) {
  const auto chosen = job_network(launch, nullptr, false, ways).settings;
  return {chosen.begin(), chosen.end()};
}

std::string why_refused(const LocalWays& ways) {
  try {
    static_cast<void>(job_network(of_one_machine(), nullptr, false, ways));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unavailable);
    return error.what();
  }
  return "none";
}

TEST(JobNetwork, WhatRanksDoNotShareIsCarriedByLoopback) {
  const WithVariable not_named("UCX_TLS", "");
  EXPECT_EQ(settings(of_one_machine(), split()), (Settings{{"TLS", "self,posix,tcp"}, {"NET_DEVICES", "lo"}}));
  EXPECT_EQ(settings(of_one_machine(), small_shm()), (Settings{{"TLS", "self,cma,xpmem,tcp"}, {"NET_DEVICES", "lo"}}));
  const JobNetwork network = job_network(of_one_machine(), nullptr, false, small_shm());
  EXPECT_TRUE(network.loopback && !network.shm);
  EXPECT_EQ(network.note, "/dev/shm has 7 bytes free: TCP over loopback carries messages");
  EXPECT_TRUE(job_network(of_one_machine(), nullptr).shm);
}

TEST(JobNetwork, WithoutLoopbackTheReasonIsTold) {
  LocalWays ways = split();
  ways.why_no_loopback = "ranks 0 and 1 are in two network namespaces";
  const std::string why = why_refused(ways);
  EXPECT_EQ(why.find(ways.why_split), 0u);
  EXPECT_NE(why.find(ways.why_no_loopback), std::string::npos);
  EXPECT_NE(why.find("WAYWISER_ROOT=HOST:PORT"), std::string::npos);
}

TEST(JobNetwork, TransportsOfTheUserWithoutTcpAreRefused) {
  {
    const WithVariable named("UCX_TLS", "self,sm");
    EXPECT_NE(why_refused(small_shm()).find("UCX_TLS=self,sm leaves out TCP"), std::string::npos);
    EXPECT_NE(why_refused(split()).find("UCX_TLS=self,sm leaves out TCP"), std::string::npos);
  }
  const WithVariable without_it("UCX_TLS", "self,cma");  // which /dev/shm does not matter to
  EXPECT_EQ(why_refused(small_shm()), "none");
}

TEST(JobNetwork, BetweenMachinesWhatDoesNotWorkIsLeftOut) {
  const WithVariable not_named("UCX_TLS", "");
  Launch apart = at("127.0.0.1:4711");
  apart.machine = "another";
  EXPECT_EQ(settings(apart, small_shm())["TLS"], "^sysv,cuda,posix");
  EXPECT_EQ(settings(apart, split())["TLS"], "^sysv,cuda,cma,xpmem");
  const WithVariable named("UCX_TLS", "tcp,sm");
  EXPECT_EQ(settings(apart, small_shm())["TLS"], "tcp,cma,xpmem");
}

TEST(JobNetwork, NoNameOfARootIsTold) { EXPECT_THROW(job_network(at("no-such-host.invalid:4711"), nullptr), Error); }

}  // namespace
}  // namespace waywiser
