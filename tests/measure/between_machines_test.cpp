// Roads to "another machine", which is a peer process at the other end of a control line; UCX takes the loopback
// device.
#include <gtest/gtest.h>

#include <algorithm>

#include "waywiser/measure/two_process_meter.hpp"

namespace waywiser {
namespace {

struct NetworkRow {
  std::string name;
  std::string backend;
  Path path;
};

Path network_path(const std::string& mechanism, Place source, Place destination,
                  std::map<std::string, std::string> parameters) {
  parameters.insert({{"transports", "network-tcp"}, {"device", "lo"}});
  return {mechanism, source, seen_from_other(destination), 2, std::move(parameters)};
}

std::vector<NetworkRow> network_rows() {
  const std::map<std::string, std::string> pipelined{{"variant", "pipelined"}, {"chunk", "64K"}, {"depth", "2"}};
  const Path staged = network_path("ucx_staged", gpu(0), gpu(0), pipelined);
  return {{"hosts", "host", network_path("ucx", host(0), host(0), {})},
          {"tls", "host", network_path("tls", host(0), host(0), {{"by", "openssl"}})},
          {"kernel_tls", "host", network_path("tls", host(0), host(0), {{"by", "kernel"}})},
          {"virtual_pipelined", "virtual_gpu", staged},
          {"cuda_pipelined", "cuda", staged},
          {"cuda_pageable", "cuda", network_path("ucx_staged", gpu(0), gpu(0), {{"variant", "pageable"}})},
          {"cuda_whole", "cuda", network_path("ucx_staged", gpu(0), gpu(0), {{"variant", "whole"}})},
          {"cuda_up", "cuda", network_path("ucx_staged", host(0), gpu(0), pipelined)},
          {"cuda_down", "cuda", network_path("ucx_staged", gpu(0), host(0), pipelined)},
          {"cuda_ucx", "cuda", network_path("ucx", gpu(0), gpu(0), {{"gdrcopy", "off"}})},
          {"cuda_gdrcopy", "cuda", network_path("ucx", gpu(0), gpu(0), {{"gdrcopy", "on"}})}};
}

PlatformChoice backend_choice(const std::string& backend) {
  PlatformChoice choice{backend, {}};
  choice.machine.gpus = backend == "host" ? 0 : 1;
  choice.machine.memory = 64ull << 20;
  return choice;
}

class BetweenMachines : public testing::TestWithParam<NetworkRow> {};

TEST_P(BetweenMachines, BytesArriveInEveryOperation) {
  const NetworkRow& row = GetParam();
  if (row.backend == "cuda" && why_no_cuda()) GTEST_SKIP() << *why_no_cuda();
  const std::unique_ptr<Platform> platform = open_platform(backend_choice(row.backend));
  std::unique_ptr<PeerProgram> other;
  TwoProcessMeter meter(*platform, backend_choice(row.backend), [&] {
    auto [mine, theirs] = PeerChannel::socket_pair();
    other = std::make_unique<PeerProgram>(WAYWISER_PEER_PATH, theirs);
    return std::move(mine);
  });
  if (const auto why = meter.why_unavailable(row.path)) GTEST_SKIP() << *why;
  EXPECT_EQ(meter.other_side().gpus, platform->gpu_count());
  for (const Operation operation : {Operation::latency, Operation::streaming, Operation::bidirectional})
    for (const Bytes bytes : {Bytes{1}, Bytes{4097}, Bytes{300001}})
      EXPECT_EQ(meter.verify(row.path, operation, bytes), std::nullopt) << name(operation) << " of " << bytes;
  EXPECT_GT(meter.take(row.path, Operation::latency, 4096, 3).seconds, 0);
}

INSTANTIATE_TEST_SUITE_P(Rows, BetweenMachines, testing::ValuesIn(network_rows()),
                         [](const testing::TestParamInfo<NetworkRow>& row) { return row.param.name; });

}  // namespace
}  // namespace waywiser
