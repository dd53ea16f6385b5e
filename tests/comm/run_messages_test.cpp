// Runs of an array that go as one message, out of the memory of virtual GPUs and of hosts.
#include <gtest/gtest.h>

#include <numeric>

#include "tests/comm/gpu_array.hpp"
#include "tests/comm/test_ranks.hpp"
#include "waywiser/group/inside.hpp"

namespace waywiser {
namespace {

std::vector<ElementRun> runs_of(std::size_t count) {
  return {{5 * count, 2 * count}, {1, 0}, {0, count}, {3 * count, 1}};
}

std::vector<float> in_one(const std::vector<ElementRun>& runs, int rank) {
  std::vector<float> all;
  for (const auto& [first, length] : runs)
    for (std::size_t i = first; i < first + length; ++i)
      all.push_back(static_cast<float>(rank) + static_cast<float>(i));
  return all;
}

// Each rank gives runs to each other one, and takes its runs.
void exchange_runs(Group& group, std::size_t count, bool from_gpu, bool to_gpu) {
  const int rank = group.rank(), size = group.size();
  GpuArray mine(*group.platform(), gpu_of_rank(group).index, 7 * count);
  mine.fill(static_cast<float>(rank));
  std::vector<float> same(7 * count);
  std::iota(same.begin(), same.end(), static_cast<float>(rank));
  const std::vector<ElementRun> runs = runs_of(count);
  GpuArray on_gpu(*group.platform(), gpu_of_rank(group).index, 3 * count + 1);
  std::vector<float> on_host(3 * count + 1);
  for (int distance = 1; distance < size; ++distance) {
    const int to = (rank + distance) % size, from = (rank - distance + size) % size;
    const ConstElements data = from_gpu ? ConstElements(mine.elements()) : ConstElements(std::span(same));
    Future taking = group.recv(to_gpu ? on_gpu.elements() : Elements(std::span(on_host)), from, 3, Mode::begin);
    send_runs(group, data, runs, to, 3).wait();
    taking.wait();
    require_that(to_gpu ? on_gpu.is(in_one(runs, from)) : on_host == in_one(runs, from), "the runs in their order");
  }
}

// `way`: from GPU to GPU.
void exchange_all(Group& group, const std::string& way) {
  for (const bool to_gpu : {true, false})
    for (const bool from_gpu : {true, false})
      for (const std::size_t count : {1, 700, 200001}) {
        exchange_runs(group, count, from_gpu, to_gpu);
        for (int to = 0; to < group.size(); ++to)
          if (from_gpu && to_gpu && to != group.rank())
            require_that(message_way(group, to, gpu_of_rank(group), count) == way, "they go " + way);
      }
}

TEST(RunMessages, OutOfGpusAndHosts) {
  for (const int size : {1, 2, 3, 5, 8}) {
    TestRanks ranks(size);
    ranks.virtual_gpus = size;
    EXPECT_EQ(ranks.in_processes([](Group& group) { exchange_all(group, "direct"); }), no_problems);
  }
}

TEST(RunMessages, AreGatheredWhereNoCopyReaches) {
  TestRanks ranks(3);
  ranks.virtual_gpus = 3;
  ranks.machines_apart = true;
  EXPECT_EQ(ranks.in_processes([](Group& group) { exchange_all(group, "staged"); }), no_problems);
}

TEST(RunMessages, OfNothingOrOfOneRun) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    GpuArray mine(*group.platform(), group.rank(), 9000), theirs(*group.platform(), group.rank(), 8000);
    mine.fill(static_cast<float>(group.rank()));
    const int other = 1 - group.rank();
    for (const std::vector<ElementRun>& runs :
         {std::vector<ElementRun>{}, {{5, 0}, {7, 0}}, {{0, 0}, {1000, 8000}}, {{1000, 4000}, {5000, 4000}}}) {
      const std::vector<float> expected = in_one(runs, other);
      Future taking = group.recv(theirs.elements().slice(0, expected.size()), other, 0, Mode::begin);
      send_runs(group, mine.elements(), runs, other, 0).wait();
      taking.wait();
      if (!expected.empty()) require_that(theirs.is(expected), "the runs");
    }
  }),
            no_problems);
}

// The other end is told of all runs in one, so unlike lengths are the same error as ever.
TEST(RunMessages, OfAnotherLengthAreAnError) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  const auto problems = ranks.in_processes([](Group& group) {
    GpuArray mine(*group.platform(), group.rank(), 9000);
    mine.fill(0);
    const std::vector<ElementRun> runs{{4000, 3000}, {0, 2000}};
    if (group.rank() == 0) send_runs(group, mine.elements(), runs, 1, 0).wait();
    if (group.rank() == 1) group.recv(mine.elements().slice(0, 4000), 0);
    group.barrier();
  });
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_NE(problems[0].find("receives 16000 bytes"), std::string::npos) << problems[0];
}

}  // namespace
}  // namespace waywiser
