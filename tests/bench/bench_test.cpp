// One rank's side of a benchmark.
#include <gtest/gtest.h>

#include <set>

#include "tests/comm/test_ranks.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/bench/bench_rank.hpp"

namespace waywiser {
namespace {

const char* const operations[] = {"latency",
                                  "multi_latency",
                                  "bandwidth",
                                  "message_rate",
                                  "bidirectional",
                                  "multi_bandwidth",
                                  "overlap",
                                  "put",
                                  "put_bandwidth",
                                  "get",
                                  "get_bandwidth",
                                  "barrier",
                                  "broadcast",
                                  "reduce",
                                  "all_reduce",
                                  "reduce_scatter",
                                  "all_gather",
                                  "all_to_all",
                                  "gather",
                                  "scatter",
                                  "neighbor_exchange",
                                  "overlap_all_reduce",
                                  "scan",
                                  "exscan",
                                  "prepared_exchange"};

std::string line_of(const std::string& operation, const std::string& memory, Bytes bytes, const std::string& mode) {
  return operation + ' ' + memory + ' ' + std::to_string(bytes) + " 4 2 2 7 1000 " + mode;
}

// The reason, if it is not offered.
std::string why_not(BenchRank& bench, const std::string& line) {
  try {
    bench.run(parse_bench_request(line));
  } catch (const Error& error) {
    require_that(error.kind() == ErrorKind::unavailable, error.what());
    return error.what();
  }
  return {};
}

void run_all(const JoinOptions& options, const std::string& memory, Bytes bytes) {
  BenchRank bench(options);
  for (const char* operation : operations) {
    const auto times = bench.run(parse_bench_request(line_of(operation, memory, bytes, "blocking")));
    require_that(times.size() == 2 && times[0] > 0, std::string(operation) + ": two times");
  }
  require_that(bench.share(bench.rank() == 0 ? "next" : "") == "next", "what rank 0 said");
  const auto all = bench.collect({1.0 * bench.rank(), 2});
  require_that(bench.rank() != 0 || all.back() == std::vector<double>{bench.size() - 1.0, 2},
               "what the last rank gave");
}

// All that is of the host alone says so, and nothing is left behind that the next one trips over.
void enqueue_all(const JoinOptions& options, const std::string& memory, Bytes bytes) {
  BenchRank bench(options);
  const std::set<std::string> of_the_host = {"overlap", "overlap_all_reduce", "put",
                                             "get",     "put_bandwidth",      "get_bandwidth"};
  for (const char* each : operations) {
    const std::string operation = each;
    const std::string said = why_not(bench, line_of(operation, memory, bytes, "stream"));
    require_that(said.empty() != of_the_host.contains(operation), operation + ": " + said);
    const std::string of_graphs = why_not(bench, line_of(operation, memory, bytes, "graph"));
    require_that(of_graphs.find(said.empty() ? "cannot be captured" : "of the host") != 0,
                 operation + ": " + of_graphs);
  }
  require_that(!why_not(bench, line_of("latency", "host gpu", bytes, "stream")).empty(), "a host's array on a stream");
}

using Everything = void (*)(const JoinOptions&, const std::string&, Bytes);

std::vector<std::string> all_operations(int size, const std::string& memory, Bytes bytes, Everything run = run_all) {
  TestRanks ranks(size);
  ranks.virtual_gpus = size;
  std::vector<TestRanks::Process> processes;
  for (int rank = 0; rank < size; ++rank)
    processes.push_back(ranks.start(rank, [&](int self) { run(ranks.options(self), memory, bytes); }));
  std::vector<std::string> problems;
  for (const TestRanks::Process& process : processes)
    if (std::string problem = TestRanks::wait(process); !problem.empty()) problems.push_back(std::move(problem));
  return problems;
}

TEST(Bench, EveryOperationOnHostMemory) {
  EXPECT_EQ(all_operations(2, "host host", 1000), no_problems);
  EXPECT_EQ(all_operations(3, "host host", 4), no_problems);
}

TEST(Bench, EveryOperationOnVirtualGpus) { EXPECT_EQ(all_operations(2, "gpu gpu", 1000), no_problems); }

TEST(Bench, EveryOperationOnStreamsOfVirtualGpus) {
  EXPECT_EQ(all_operations(2, "gpu gpu", 1000, enqueue_all), no_problems);
  EXPECT_EQ(all_operations(3, "gpu exposed", 1000, enqueue_all), no_problems);
}

TEST(Bench, RequestsAreChecked) {
  const BenchRequest request = parse_bench_request("put host gpu 64 4 10 3 99 5000 stream one_shot");
  EXPECT_EQ(request.operation, "put");
  EXPECT_EQ(request.output, "gpu");
  EXPECT_EQ(request.bytes, 64u);
  EXPECT_EQ(request.samples, 3);
  EXPECT_DOUBLE_EQ(request.compute, 5e-6);
  EXPECT_EQ(request.mode, CallMode::stream);
  EXPECT_EQ(request.way, "one_shot");
  EXPECT_EQ(parse_bench_request("put gpu exposed 64 4 100 3 99 0 graph").calls, 100);
  for (const char* wrong :
       {"", "put", "put host disk 64 4 10 3 99 0 blocking", "put host gpu -1 4 10 3 99 0 blocking",
        "put host gpu 64 0 10 3 99 0 blocking", "put host gpu 64 4 10 3 99", "put host gpu 6x 4 1 1 1 0 blocking",
        "put host gpu 64 4 99999999999 3 99 0 blocking", "put host gpu 64 4 10 3 99 0",
        "put host gpu 64 4 10 3 99 0 eager", "put gpu gpu 64 4 51 3 99 0 graph"})
    EXPECT_THROW(parse_bench_request(wrong), Error) << wrong;
}

TEST(Bench, WrongDataIsFound) {
  const auto platform = open_host_platform();
  BenchBuffer buffer(*platform, host(0), 100);
  buffer.fill(0, 100, 1);
  buffer.check(0, 100, 1, "the same");
  EXPECT_THROW(buffer.check(0, 100, 2, "another sample"), Error);
  buffer.memory().region().data[99] ^= std::byte{1};
  EXPECT_THROW(buffer.check(0, 100, 1, "one bit"), Error);
  buffer.fill_numbers(100, 5);
  buffer.check_sums(100, 5, 1, 0, "one rank");
  EXPECT_THROW(buffer.check_sums(100, 5, 2, 0, "two ranks"), Error);
}

}  // namespace
}  // namespace waywiser
