// Groups on the memory of virtual GPUs.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "tests/comm/test_ranks.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/device/platform.hpp"

namespace waywiser {
namespace {

const std::vector<std::string> none;
constexpr Seconds patience = 20;

// An array on one GPU, and what the host knows of it.
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
  bool holds(float first) {
    copy(host_.region(), memory_.region());
    for (std::size_t i = 0; i < count_; ++i)
      if (values()[i] != first + static_cast<float>(i)) return false;
    return true;
  }
  Elements elements() const { return {memory_.region().slice(0, count_ * sizeof(float)), DataType::float32}; }
  const Memory& memory() const { return memory_; }

 private:
  std::span<float> values() { return {reinterpret_cast<float*>(host_.region().data), count_}; }
  void copy(Region destination, ConstRegion source) {
    stream_->copy(destination, source);
    stream_->synchronize(Deadline::in(patience));
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
            none);
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
            none);
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
