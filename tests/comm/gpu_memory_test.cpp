// Groups on the memory of virtual GPUs.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "tests/comm/test_ranks.hpp"
#include "tests/policy/made_up_rows.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/policy/chooser.hpp"

namespace waywiser {
namespace {

constexpr Seconds gpu_patience = 20;

// An array on one GPU, and the host's copy of its contents.
class GpuArray {
 public:
  GpuArray(Platform& platform, int gpu_index, std::size_t count)
      : memory_(platform.allocate(gpu(gpu_index), std::max<Bytes>(count, 1) * sizeof(float), Allocation::gpu)),
        host_(platform.allocate(host(0), std::max<Bytes>(count, 1) * sizeof(float), Allocation::pinned)),
        stream_(platform.open_stream(gpu(gpu_index))),
        count_(count) {}

  void fill(float first) {
    std::iota(values().begin(), values().end(), first);
    copy(memory_.region(), host_.region());
  }
  bool holds(float first) { return elements_hold(count_, first); }
  bool elements_hold(std::size_t count, float first) {
    copy(host_.region(), memory_.region());
    for (std::size_t i = 0; i < count; ++i)
      if (values()[i] != first + static_cast<float>(i)) return false;
    return true;
  }
  Elements elements() const { return {memory_.region().slice(0, count_ * sizeof(float)), DataType::float32}; }
  const Memory& memory() const { return memory_; }

 private:
  std::span<float> values() { return {reinterpret_cast<float*>(host_.region().data), count_}; }
  void copy(Region destination, ConstRegion source) {
    stream_->copy(destination, source);
    stream_->synchronize(Deadline::in(gpu_patience));
  }

  Memory memory_, host_;
  std::unique_ptr<Stream> stream_;
  std::size_t count_;
};

TEST(GpuMemory, MessagesBetweenGpusAndHosts) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([&](Group& group) {
    const auto platform = group.platform();
    for (const std::size_t count : {0, 1, 5000}) {
      GpuArray mine(*platform, group.rank(), count), theirs(*platform, group.rank(), count);
      mine.fill(static_cast<float>(10 * group.rank()));
      const int other = 1 - group.rank();
      group.sendrecv(mine.elements(), other, theirs.elements(), other);
      require_that(theirs.holds(static_cast<float>(10 * other)), "what the other GPU sent");
      std::vector<float> on_host(count);
      if (group.rank() == 0) group.send(mine.elements(), 1);
      if (group.rank() == 1) group.recv(std::span(on_host), 0);
      if (group.rank() == 1 && count > 1) require_that(on_host[1] == 1, "what came to the host");
    }
  }),
            no_problems);
}

// Between two processes, in both directions.
std::shared_ptr<const Chooser> plan_of(const std::vector<Path>& paths) {
  Plan plan;
  plan.rows = {made_up::message_row(paths, 0, 1 << 30, Operation::latency, {{gpu(1), gpu(0)}})};
  return std::make_shared<const Chooser>(std::move(plan));
}

std::shared_ptr<const Chooser> plan_that_stages(const std::string& variant) {
  return plan_of({{"host_staged", gpu(0), gpu(1), 2, {{"variant", variant}, {"handle", "cuda_ipc"}}}});
}

// Long messages find their own way: by the plan's path, or in pieces where an array is on the host or out of reach.
void exchange_long_ones(Group& group, int gpu_index) {
  const auto platform = group.platform();
  constexpr std::size_t count = 700001;  // three pieces
  const int other = 1 - group.rank();
  GpuArray mine(*platform, gpu_index, count), theirs(*platform, gpu_index, count);
  mine.fill(static_cast<float>(group.rank()));
  for (int i = 0; i < 2; ++i) {
    group.sendrecv(mine.elements().slice(1, count - 1), other, theirs.elements().slice(0, count - 1), other);
    require_that(theirs.elements_hold(count - 1, static_cast<float>(other + 1)), "what the other GPU sent");
  }
  std::vector<float> on_host(count);
  Future taking = group.recv(std::span(on_host), other, 5, Mode::begin);
  group.send(mine.elements(), other, 5);
  taking.wait();
  require_that(on_host[count - 1] == static_cast<float>(other) + static_cast<float>(count - 1),
               "what came to the host");
  Future arriving = group.recv(theirs.elements(), other, 6, Mode::begin);
  group.send(std::span<const float>(on_host), other, 6);
  arriving.wait();
  require_that(theirs.holds(static_cast<float>(group.rank())), "what came back from the host");
}

TEST(GpuMemory, LongMessages) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([](Group& group) { exchange_long_ones(group, group.rank()); }), no_problems);
  ranks.virtual_gpus = 1;
  EXPECT_EQ(ranks.in_processes([](Group& group) { exchange_long_ones(group, 0); }), no_problems);
}

TEST(GpuMemory, LongMessagesFollowThePlan) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  ranks.chooser_of = [](int) { return plan_that_stages("whole"); };
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    exchange_long_ones(group, group.rank());
    require_that(group.why_staged(1 - group.rank()).find("on its host") != std::string::npos, "the last one's reason");
  }),
            no_problems);
}

// Faults: gpus P
TEST(GpuMemory, LongMessagesOfTwoSizesAreAnError) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  const auto problems = ranks.in_processes([](Group& group) {
    GpuArray mine(*group.platform(), group.rank(), 5000);
    mine.fill(0);
    if (group.rank() == 0) group.send(mine.elements(), 1);
    if (group.rank() == 1) group.recv(mine.elements().slice(0, 4000), 0);
    group.barrier();
  });
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_NE(problems[0].find("receives 16000 bytes"), std::string::npos) << problems[0];
}

TEST(GpuMemory, CollectivesInPlaceAndNot) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([&](Group& group) {
    const auto platform = group.platform();
    constexpr std::size_t count = 3000;
    GpuArray mine(*platform, group.rank(), count), out(*platform, group.rank(), count);
    mine.fill(static_cast<float>(group.rank()));
    out.fill(-1);
    group.all_reduce(mine.elements(), out.elements(), ReduceOp::max);
    require_that(out.holds(1), "the largest");
    group.all_reduce(mine.elements(), mine.elements(), ReduceOp::min);
    require_that(mine.holds(0), "the least, in place");
    out.fill(static_cast<float>(group.rank() + 7));
    group.broadcast(out.elements(), 1);
    require_that(out.holds(8), "what was broadcast");
    out.fill(3);
    group.gather(mine.elements().slice(0, count / 2), out.elements(), 0);
    if (group.rank() == 1) require_that(out.holds(3), "an output that is none of this rank's is left alone");
  }),
            no_problems);
}

TEST(GpuMemory, CallsOnStreamsComeBehindTheirWork) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([&](Group& group) {
    const auto platform = group.platform();
    constexpr std::size_t count = 3000;
    GpuArray mine(*platform, group.rank(), count), copy(*platform, group.rank(), count);
    const auto stream = platform->open_stream(gpu(group.rank()));
    mine.fill(static_cast<float>(group.rank()));
    stream->copy(copy.elements().region, mine.elements().region);
    group.all_reduce(copy.elements(), copy.elements(), ReduceOp::max, Mode::on(*stream));
    group.synchronize(*stream);
    require_that(copy.holds(1), "the largest of what the stream had copied");
    const int other = 1 - group.rank();
    group.sendrecv(mine.elements(), other, copy.elements(), other, 0, Mode::on(*stream));
    group.barrier(Mode::on(*stream));
    group.synchronize(*stream);
    require_that(copy.holds(static_cast<float>(other)), "what the other sent");
  }),
            no_problems);
}

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
  return plan_of(paths);
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
      return plan_of(
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

TEST(GpuMemory, RanksWithDifferentPlansDoNotFormAGroup) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  ranks.chooser_of = [](int rank) { return plan_that_stages(rank == 0 ? "pageable" : "whole"); };
  const auto problems = ranks.in_processes([](Group&) {});
  ASSERT_EQ(problems.size(), 2u);
  for (const std::string& problem : problems) EXPECT_NE(problem.find("follows plan "), std::string::npos) << problem;
}

TEST(GpuMemory, WindowsOfTwoRanksOnOneGpu) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 1;
  EXPECT_EQ(ranks.in_processes([](Group& group) { put_and_get(group, 0); }), no_problems);
}

TEST(GpuMemory, NeedsAPlatform) {
  const auto problems = TestRanks(1).in_threads([](Group& group) {
    std::byte never_touched{};
    group.send(ConstElements(ConstRegion{&never_touched, 1, gpu(0)}, DataType::uint8), 0);
  });
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_NE(problems[0].find("joined without a platform"), std::string::npos) << problems[0];
}

}  // namespace
}  // namespace waywiser
