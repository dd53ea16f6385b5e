#include "waywiser/measure/two_process_meter.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

#include "tests/measure/failure.hpp"
#include "tests/transport/sanitized.hpp"

namespace waywiser {
namespace {

struct Row {
  std::string name;
  std::string backend;
  Path path;
};

const Path direct{"host_copy", host(0), host(0), 2, {{"stores", "temporal"}, {"threads", "1"}}};
const Path around{"host_copy", host(0), host(0), 2, {{"stores", "nontemporal"}, {"threads", "2"}}};
const Path posix{"ucx", host(0), host(0), 2, {{"transports", "posix"}}};

Path ucx(const std::string& transports) { return {"ucx", host(0), host(0), 2, {{"transports", transports}}}; }

Path virtual_path(const std::string& mechanism, Place source, Place destination,
                  std::map<std::string, std::string> parameters = {}) {
  return {mechanism, source, destination, 2, std::move(parameters)};
}

std::vector<Row> rows() {
  const std::map<std::string, std::string> push{{"direction", "push"}, {"blocks", "2"}};
  const std::map<std::string, std::string> pull{{"direction", "pull"}, {"blocks", "2"}};
  const std::map<std::string, std::string> chunks{{"chunk", "64K"}, {"depth", "2"}};
  auto pipelined = chunks, relayed = chunks;
  pipelined["variant"] = "pipelined";
  relayed["via"] = "gpu2";
  return {{"host_copy", "host", direct},
          {"host_copy_nontemporal", "host", around},
          {"ucx_posix", "host", posix},
          {"ucx_sysv", "host", ucx("sysv")},
          {"ucx_cma", "host", ucx("cma")},
          {"ucx_tcp", "host", ucx("tcp")},
          {"copy_engine", "virtual_gpu", virtual_path("copy_engine", gpu(0), gpu(1), {{"handle", "cuda_ipc"}})},
          {"copy_engine_descriptor", "virtual_gpu",
           virtual_path("copy_engine", gpu(0), gpu(1), {{"handle", "descriptor"}})},
          {"copy_engine_up", "virtual_gpu", virtual_path("copy_engine", host(0), gpu(1))},
          {"copy_engine_down", "virtual_gpu", virtual_path("copy_engine", gpu(1), host(0))},
          {"sm_copy_push", "virtual_gpu", virtual_path("sm_copy", gpu(0), gpu(1), push)},
          {"sm_copy_pull", "virtual_gpu", virtual_path("sm_copy", gpu(0), gpu(1), pull)},
          {"sm_copy_down", "virtual_gpu", virtual_path("sm_copy", gpu(0), host(0), push)},
          {"host_staged_whole", "virtual_gpu", virtual_path("host_staged", gpu(0), gpu(1), {{"variant", "whole"}})},
          {"host_staged_pipelined", "virtual_gpu", virtual_path("host_staged", gpu(0), gpu(1), pipelined)},
          {"relay", "virtual_gpu", virtual_path("relay", gpu(0), gpu(1), relayed)},
          {"courier_up", "virtual_gpu", virtual_path("courier", host(0), gpu(0))},
          {"courier_down", "virtual_gpu", virtual_path("courier", gpu(0), host(0))},
          {"courier_up_cuda", "cuda", {"courier", host(0), gpu(0), 2, {}}},
          {"courier_down_cuda", "cuda", {"courier", gpu(0), host(0), 2, {}}},
          {"ucx_cuda_ipc_cuda", "cuda", {"ucx", gpu(0), gpu(1), 2, {{"transports", "cuda_ipc"}}}},
          {"ucx_cuda_copy_cuda", "cuda", {"ucx", gpu(0), gpu(1), 2, {{"transports", "cuda_copy"}}}},
          {"ucx_cuda_copy_up_cuda", "cuda", {"ucx", host(0), gpu(0), 2, {{"transports", "cuda_copy"}}}},
          {"ucx_cuda_copy_down_cuda", "cuda", {"ucx", gpu(0), host(0), 2, {{"transports", "cuda_copy"}}}}};
}

PlatformChoice choice_of(const std::string& backend) {
  PlatformChoice choice{backend, {}};
  choice.machine.gpus = backend == "host" ? 0 : 3;
  choice.machine.memory = 64ull << 20;
  return choice;
}

struct Pair {
  explicit Pair(const std::string& backend, Seconds patience = 20)
      : platform(open_platform(choice_of(backend))),
        meter(*platform, choice_of(backend), WAYWISER_PEER_PATH, {}, patience) {}
  std::unique_ptr<Platform> platform;
  TwoProcessMeter meter;
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

class TwoProcesses : public testing::TestWithParam<Row> {};

TEST_P(TwoProcesses, EveryOperationMovesEveryByte) {
  const auto& [name, backend, path] = GetParam();
  if (!cma_runs && name == "ucx_cma") GTEST_SKIP() << "AddressSanitizer";
  if (backend == "cuda" && why_no_cuda()) GTEST_SKIP() << *why_no_cuda();
  Pair pair(backend);
  if (backend == "cuda" && path.destination == gpu(1) && pair.platform->gpu_count() < 2) GTEST_SKIP() << "one GPU";
  if (const auto why = pair.meter.why_unavailable(path)) GTEST_SKIP() << label(path) << ": " << *why;
  EXPECT_GT(pair.meter.first_use(path), 0);
  for (const Operation operation : {Operation::latency, Operation::streaming, Operation::bidirectional}) {
    for (const Bytes bytes : {Bytes{1}, Bytes{8}, Bytes{4097}, Bytes{100003}}) {
      EXPECT_EQ(pair.meter.verify(path, operation, bytes), std::nullopt) << bytes;
      if (bytes > 16384) continue;  // timed from 64 MiB of memory: once, below
      const Sample sample = pair.meter.take(path, operation, bytes, 5);
      EXPECT_GT(sample.seconds, 0);
      EXPECT_GT(sample.cpu_seconds, 0);
      EXPECT_EQ(sample.each.size(), operation == Operation::latency ? 5u : 0u);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Paths, TwoProcesses, testing::ValuesIn(rows()),
                         [](const auto& row) { return row.param.name; });

// The one needs the other: a UCX with only one of them here is asked in the wrong way.
TEST(TwoProcessMeter, UcxHasBothOfItsTransportsForGpusOrNone) {
  if (why_no_cuda()) GTEST_SKIP() << *why_no_cuda();
  Pair pair("cuda");
  if (pair.platform->gpu_count() < 2) GTEST_SKIP() << "one GPU";
  const auto why_not = [&](const std::string& transports) {
    return pair.meter.why_unavailable({"ucx", gpu(0), gpu(1), 2, {{"transports", transports}}});
  };
  EXPECT_EQ(why_not("cuda_ipc").has_value(), why_not("cuda_copy").has_value()) << why_not("cuda_copy").value_or("");
}

TEST(TwoProcessMeter, MovesLargeMessages) {
  Pair pair("host");
  constexpr Bytes large = (32ull << 20) + 1;
  EXPECT_EQ(pair.meter.verify(direct, Operation::streaming, large), std::nullopt);
  if (!pair.meter.why_unavailable(posix)) {
    EXPECT_EQ(pair.meter.verify(posix, Operation::bidirectional, large), std::nullopt);
  }
  EXPECT_GE(pair.meter.largest(direct), large);
}

TEST(TwoProcessMeter, ManyRepetitionsThroughTheWindow) {
  Pair pair("host");
  for (const Path& path : {posix, direct}) {
    if (pair.meter.why_unavailable(path)) continue;
    EXPECT_GT(pair.meter.take(path, Operation::streaming, 64, 1000).seconds, 0);
    EXPECT_GT(pair.meter.take(path, Operation::bidirectional, 64, 1000).seconds, 0);
    EXPECT_GT(pair.meter.take(path, Operation::streaming, 100003, 1000).seconds, 0);  // more than once around
  }
}

TEST(TwoProcessMeter, OpensMorePathsThanItKeeps) {
  Pair pair("virtual_gpu");
  for (int round = 0; round < 2; ++round)
    for (int blocks = 1; blocks < 30; ++blocks) {
      const std::map<std::string, std::string> parameters{{"direction", "push"}, {"blocks", std::to_string(blocks)}};
      const Path path = virtual_path("sm_copy", gpu(0), gpu(1), parameters);
      ASSERT_EQ(pair.meter.verify(path, Operation::latency, 100), std::nullopt);
    }
}

TEST(TwoProcessMeter, AKilledPeerIsNamedAndReplaced) {
  for (const Path& path : {direct, posix}) {
    Pair pair("host");
    if (pair.meter.why_unavailable(path)) continue;
    EXPECT_EQ(pair.meter.verify(path, Operation::latency, 8), std::nullopt);
    const pid_t first = pair.meter.peer();
    ASSERT_GT(first, 0);
    std::jthread killer([&] { ::kill(first, SIGKILL); });  // as the transfers begin or run
    const std::string text = failure([&] {
      for (;;) {
        if (pair.meter.peer() != first) throw Error(ErrorKind::io, "replaced before the transfers");
        pair.meter.take(path, Operation::latency, 1 << 20, 10000);
      }
    });
    if (text != "io: replaced before the transfers") {
      EXPECT_TRUE(text.starts_with("io: latency of 1M bytes, ")) << text;
      EXPECT_NE(text.find("host0>>host0: "), std::string::npos) << text;
      EXPECT_NE(text.find("the peer process ended"), std::string::npos) << text;
    }
    EXPECT_EQ(pair.meter.verify(path, Operation::latency, 8), std::nullopt);
    EXPECT_NE(pair.meter.peer(), first);
  }
}

TEST(TwoProcessMeter, AStoppedPeerIsATimeout) {
  for (const Path& path : {direct, posix}) {
    Pair pair("host", 0.3);
    if (pair.meter.why_unavailable(path)) continue;
    EXPECT_EQ(pair.meter.verify(path, Operation::latency, 8), std::nullopt);
    ASSERT_EQ(::kill(pair.meter.peer(), SIGSTOP), 0);
    const std::string text = failure([&] { pair.meter.take(path, Operation::latency, 8, 10); });
    EXPECT_TRUE(text.starts_with("timeout: latency of 8 bytes, ")) << text;
    EXPECT_NE(text.find("the peer process does not answer"), std::string::npos) << text;
    EXPECT_NE(pair.meter.peer(), 0);
  }
}

TEST(TwoProcessMeter, AFullGpuIsNamedAndTheNextCaseRuns) {
  Pair pair("virtual_gpu");
  const Path path = virtual_path("copy_engine", gpu(0), gpu(1));
  EXPECT_EQ(pair.meter.verify(path, Operation::latency, 8), std::nullopt);
  const std::string text = failure([&] { pair.meter.take(path, Operation::streaming, 48ull << 20, 1); });
  EXPECT_NE(text.find("streaming of 48M bytes, copy_engine, gpu0>>gpu1: "), std::string::npos) << text;
  EXPECT_EQ(pair.meter.verify(path, Operation::latency, 8), std::nullopt);
}

TEST(TwoProcessMeter, SaysWhatItCannotDo) {
  Pair pair("host");
  Path one = direct;
  one.processes = 1;
  EXPECT_EQ(pair.meter.why_unavailable(one), "a path within one process");
  EXPECT_TRUE(failure([&] { pair.meter.take(direct, Operation::loaded, 8, 1); }).starts_with("unavailable: loaded"));
  TwoProcessMeter none(*pair.platform, choice_of("host"), "/nowhere/waywiser-peer");
  EXPECT_NE(failure([&] { none.take(direct, Operation::latency, 8, 1); }).find("cannot start the peer process"),
            std::string::npos);
  TwoProcessMeter wrong(*pair.platform, {"abacus", {}}, WAYWISER_PEER_PATH);
  EXPECT_NE(failure([&] { wrong.take(direct, Operation::latency, 8, 1); }).find("'abacus' is not a back end"),
            std::string::npos);
}

}  // namespace
}  // namespace waywiser
