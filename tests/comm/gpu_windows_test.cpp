// Windows on the memory of virtual GPUs.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/comm/gpu_array.hpp"
#include "tests/comm/plans_of_paths.hpp"
#include "tests/comm/test_ranks.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/policy/chooser.hpp"

namespace waywiser {
namespace {

void put_and_get(Group& group, int gpu_index) {
  const auto platform = group.platform();
  constexpr std::size_t count = 2000;
  constexpr Bytes bytes = count * sizeof(float);
  // The last eight bytes are the flag.
  GpuArray window_memory(*platform, gpu_index, count + 2), mine(*platform, gpu_index, count),
      back(*platform, gpu_index, count);
  window_memory.fill(0);
  mine.fill(static_cast<float>(100 * group.rank()));
  const int other = 1 - group.rank();
  Window window = group.expose(window_memory.memory().region());
  const Bytes flag = bytes;
  group.barrier();
  window.signal(other, flag, 0);
  group.barrier();
  window.put(mine.elements().region, other, 0);
  window.signal(other, flag, 3);
  window.wait(flag, 3);
  window.get(back.elements().region, group.rank(), 0);
  require_that(back.holds(static_cast<float>(100 * other)), "what the other put");
  window.get(back.elements().region, other, 0);
  require_that(back.holds(static_cast<float>(100 * group.rank())), "what was put there");
  EXPECT_THROW(window.put(mine.elements().region, other, 16), Error);
  group.barrier();
}

TEST(GpuMemory, WindowsBetweenTwoGpus) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([](Group& group) { put_and_get(group, group.rank()); }), no_problems);
}

// By kernels and copy engines, between GPUs and between a GPU and its host, in both directions: the other rank's memory
// is open only for the kernels of this rank's GPU.
void put_and_get_everything(Group& group) {
  const auto platform = group.platform();
  const int other = 1 - group.rank();
  for (const std::size_t count : {1, 2000, 300000}) {
    const Bytes bytes = count * sizeof(float);
    GpuArray shown(*platform, group.rank(), count), mine(*platform, group.rank(), count),
        back(*platform, group.rank(), count);
    const Memory pinned = platform->allocate(host(0), bytes, Allocation::pinned);
    std::vector<float> pageable(count);
    const Region hosts[] = {{reinterpret_cast<std::byte*>(pageable.data()), bytes, host(0)},
                            pinned.region().slice(0, bytes)};
    const auto number = [&](int rank, int turn) { return static_cast<float>(1000 * rank + 7 * turn + 1); };
    mine.fill(number(group.rank(), 0));
    const Window window = group.expose(shown.memory().region());
    window.put(mine.elements().region, other, 0);
    group.barrier();
    require_that(shown.holds(number(other, 0)), "what was put out of a GPU");
    window.get(back.elements().region, other, 0);
    require_that(back.holds(number(group.rank(), 0)), "what was got into a GPU");
    group.barrier();
    for (const Region& here : hosts) {
      std::memset(here.data, 0, bytes);
      window.get(here, other, 0);
      float first = 0;
      std::memcpy(&first, here.data, sizeof first);
      require_that(first == number(group.rank(), 0), "what was got into the host");
      window.put(here, other, 0);
      group.barrier();
      require_that(shown.holds(number(other, 0)), "what was put out of the host");
    }
    group.barrier();
  }
}

TEST(GpuMemory, WindowsWithoutAPlan) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  using Walls = std::vector<std::vector<std::string>>;
  for (const Walls& walls : {Walls{}, Walls{{"", "a wall"}, {"a wall", ""}}, Walls{{"", ""}, {"one way", ""}}}) {
    ranks.no_peer_access = walls;
    EXPECT_EQ(ranks.in_processes(put_and_get_everything), no_problems) << walls.size();
  }
}

// The plan has a kernel that pushes; with `reading` also one that reads.
std::shared_ptr<const Chooser> plan_of_pushes(bool reading) {
  const auto kernel = [](const char* direction, const char* blocks) {
    return Path{"sm_copy", gpu(0), gpu(1), 2, {{"direction", direction}, {"blocks", blocks}, {"handle", "cuda_ipc"}}};
  };
  std::vector<Path> paths{kernel("push", "4")};
  if (reading) paths.push_back(kernel("pull", "8"));
  return plan_of_paths(paths);
}

// What is executed was measured, or the rank says that it was not.
TEST(GpuMemory, CopiesThatThePlanDoesNotServeAreNamed) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  for (const bool reading : {false, true}) {
    ranks.chooser_of = [&](int) { return plan_of_pushes(reading); };
    EXPECT_EQ(ranks.in_processes([&](Group& group) {
      const int other = 1 - group.rank();
      GpuArray shown(*group.platform(), group.rank(), 5000), mine(*group.platform(), group.rank(), 5000);
      Window window = group.expose(shown.memory().region());
      testing::internal::CaptureStderr();
      window.put(mine.elements().region, other, 0);
      EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
      testing::internal::CaptureStderr();
      for (int i = 0; i < 2; ++i) window.get(mine.elements().region, other, 0);
      const std::string here = text(gpu(group.rank())), there = text(gpu(other));
      const std::string note = "waywiser: " + there + " to " + here +
                               ": sm_copy(blocks=16,direction=pull,handle=cuda_ipc), which was not measured for this: "
                               "the plan has sm_copy(blocks=4,direction=push,handle=cuda_ipc), and no path that " +
                               here + " runs alone; `waywiser tune` measures more\n";
      EXPECT_EQ(testing::internal::GetCapturedStderr(), reading ? "" : note);
      group.barrier();
    }),
              no_problems);
  }
}

// Whatever the plan says for the pair, this rank's own GPU carries out a get.
TEST(GpuMemory, WindowsWhereThePlanHasKernels) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  for (const char* direction : {"push", "pull"}) {
    ranks.chooser_of = [&](int) {
      return plan_of_paths(
          {{"sm_copy", gpu(0), gpu(1), 2, {{"direction", direction}, {"blocks", "4"}, {"handle", "cuda_ipc"}}}});
    };
    EXPECT_EQ(ranks.in_processes(put_and_get_everything), no_problems) << direction;
  }
}

TEST(GpuMemory, WindowsFollowThePlan) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  ranks.chooser_of = [](int) { return plan_that_stages("pageable"); };
  EXPECT_EQ(ranks.in_processes([](Group& group) { put_and_get(group, group.rank()); }), no_problems);
  // A path that does not exist shows that the plan is asked.
  ranks.chooser_of = [](int) { return plan_that_stages("by mail"); };
  const auto problems = ranks.in_processes([](Group& group) { put_and_get(group, group.rank()); });
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_NE((problems[0] + problems[1]).find("variant"), std::string::npos) << problems[0];
}

TEST(GpuMemory, WindowsOfTwoRanksOnOneGpu) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 1;
  EXPECT_EQ(ranks.in_processes([](Group& group) { put_and_get(group, 0); }), no_problems);
}

}  // namespace
}  // namespace waywiser
