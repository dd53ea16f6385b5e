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
  EXPECT_EQ(settings({}), (Settings{{"TLS", all_local}}));  // alone
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

TEST(JobNetwork, NoNameOfARootIsTold) { EXPECT_THROW(job_network(at("no-such-host.invalid:4711"), nullptr), Error); }

}  // namespace
}  // namespace waywiser
