// Operations that a proxy carries: their order, what they capture, and the memory of the host that they need.
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "tests/base/error_of.hpp"
#include "tests/comm/different.hpp"
#include "tests/comm/test_ranks.hpp"
#include "tests/group/gpu_numbers.hpp"
#include "tests/group/machines_of_gpus.hpp"
#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

TEST(ProxyOnStreams, GraphsHoldWhatKernelsCarryAndRefuseTheRest) {
  EXPECT_EQ(MachinesOfGpus(2, 2).in_processes([](Group& group) {
    const auto stream = group.platform()->open_stream(gpu_of_rank(group));
    group.barrier(Mode::on(*stream));
    const int neighbor = group.rank() ^ 1, far = group.rank() ^ 2;
    GpuNumbers mine(group, 100, of_rank(group.rank())), came(group, 100);
    group.all_reduce(mine.elements(), came.elements(), ReduceOp::sum, Mode::on(*stream));
    group.synchronize(*stream);
    const auto graph = stream->capture(
        [&] { group.sendrecv(mine.elements(), neighbor, came.elements(), neighbor, 0, Mode::on(*stream)); });
    for (int turn = 1; turn < 4; ++turn) {
      mine.set([&](std::size_t) { return turn + group.rank(); });
      graph->launch(*stream);
      came.expect(*stream, [&](std::size_t) { return turn + neighbor; }, "a graph");
    }
    const auto refused = [&](const std::function<void()>& call, const std::string& part) {
      std::string said = "no refusal";
      try {
        stream->capture(call);
      } catch (const Error& error) {
        said = error.what();
      }
      require_that(said.find("which no graph can capture: " + part) != std::string::npos, "not: " + said);
    };
    refused([&] { group.sendrecv(mine.elements(), far, came.elements(), far, 0, Mode::on(*stream)); },
            "rank " + std::to_string(far) + " is on another machine");
    refused([&] { group.all_reduce(mine.elements(), came.elements(), ReduceOp::sum, Mode::on(*stream)); },
            "the group's ranks are on several machines");
    group.synchronize(*stream);
  }),
            no_problems);
}

// All operations are enqueued before any of them can begin; on two streams, too.
TEST(ProxyOnStreams, TheOrderOfWhatWasEnqueuedIsKept) {
  EXPECT_EQ(MachinesOfGpus(2, 1).in_processes([](Group& group) {
    const int me = group.rank(), other = 1 - me;
    const auto stream = group.platform()->open_stream(gpu_of_rank(group));
    const auto second = group.platform()->open_stream(gpu_of_rank(group));
    group.barrier(Mode::on(*stream));
    const Memory flag = group.platform()->allocate(host(0), sizeof(std::uint64_t), Allocation::pinned);
    std::memset(flag.region().data, 0, sizeof(std::uint64_t));
    stream->wait_value(flag.region().slice(0, sizeof(std::uint64_t)), 1);
    std::vector<std::unique_ptr<GpuNumbers>> came;
    std::vector<std::unique_ptr<GpuNumbers>> gave;
    constexpr int messages = 12;
    for (int i = 0; i < messages; ++i) {
      const std::size_t count = i % 3 == 0 ? 10 : 5000;
      gave.push_back(std::make_unique<GpuNumbers>(group, count, of_rank(me * 100 + i)));
      came.push_back(std::make_unique<GpuNumbers>(group, count));
      const Mode mode = Mode::on(i % 4 == 3 ? *second : *stream);
      group.sendrecv(gave.back()->elements(), other, came.back()->elements(), other, 0, mode);
    }
    GpuNumbers sum(group, 100, [](std::size_t) { return 1; });
    for (int i = 0; i < 3; ++i) group.all_reduce(sum.elements(), sum.elements(), ReduceOp::sum, Mode::on(*stream));
    require_that(!stream->done(), "the stream has not got there");
    std::atomic_ref(*reinterpret_cast<std::uint64_t*>(flag.region().data)).store(1);
    for (int i = 0; i < messages; ++i)
      came[static_cast<std::size_t>(i)]->expect(*stream, of_rank(other * 100 + i), "message " + std::to_string(i));
    sum.expect(*stream, [](std::size_t) { return 8; }, "the last sum");
    group.synchronize(*stream);
  }),
            no_problems);
}

// Short and long messages in one exchange, in the order of their tags.
TEST(ProxyOnStreams, MessagesOfOneExchangeComeInTheOrderOfTheirTags) {
  EXPECT_EQ(MachinesOfGpus(2, 1).in_processes([](Group& group) {
    const int me = group.rank(), other = 1 - me;
    const auto stream = group.platform()->open_stream(gpu_of_rank(group));
    group.barrier(Mode::on(*stream));
    std::vector<std::unique_ptr<GpuNumbers>> gave, came;
    std::vector<Exchange> all;
    for (int i = 0; i < 6; ++i) {
      const std::size_t count = i % 2 == 0 ? 3 : 20000;
      gave.push_back(std::make_unique<GpuNumbers>(group, count, of_rank(me * 10 + i)));
      came.push_back(std::make_unique<GpuNumbers>(group, count));
      all.push_back({other, gave.back()->elements(), came.back()->elements(), i, i});
    }
    group.neighbor_exchange(all, Mode::on(*stream));
    for (int i = 0; i < 6; ++i)
      came[static_cast<std::size_t>(i)]->expect(*stream, of_rank(other * 10 + i), "message " + std::to_string(i));
    group.synchronize(*stream);
  }),
            no_problems);
}

// A split group is closed while its operations are under way; so is the whole group.
TEST(ProxyOnStreams, GroupsThatGoAndCloseEndWhatIsUnderWay) {
  EXPECT_EQ(MachinesOfGpus(2, 2).in_processes([](Group& group) {
    const auto stream = group.platform()->open_stream(gpu_of_rank(group));
    const std::size_t count = 50000;
    GpuNumbers mine(group, count, of_rank(group.rank())), sum(group, count);
    {
      std::optional<Group> part = group.split(group.rank() % 2);
      part->all_reduce(mine.elements(), sum.elements(), ReduceOp::max, Mode::on(*stream));
    }
    sum.expect(*stream, of_rank(group.rank() % 2 + 2), "a sum of a group that has gone");
    group.all_reduce(mine.elements(), sum.elements(), ReduceOp::max, Mode::on(*stream));
    sum.enqueue_look(*stream);
    group.close();
    require_that(stream->done() && sum.are(of_rank(3)), "the sum, when the group has closed");
  }),
            no_problems);
}

// A platform that can pin little memory.
class LittlePinned : public Different {
 public:
  using Different::Different;
  Memory allocate(Place place, Bytes bytes, Allocation allocation) override {
    if (allocation == Allocation::pinned && bytes > (Bytes{1} << 20))
      throw Error(ErrorKind::unavailable, "no more memory can be pinned");
    return real().allocate(place, bytes, allocation);
  }
};

// Lets a test see whether anything has been enqueued.
class WatchedStream : public Stream {
 public:
  explicit WatchedStream(Stream& real) : real_(real) {}
  Place place() const override { return real_.place(); }
  void copy(Region destination, ConstRegion source) override {
    ++copies;
    real_.copy(destination, source);
  }
  const std::byte* reach(ConstRegion region) const override { return real_.reach(region); }
  void launch(const Kernel& kernel) override { real_.launch(kernel); }
  void write_value(Region flag, std::uint64_t value) override { real_.write_value(flag, value); }
  void wait_value(ConstRegion flag, std::uint64_t at_least) override { real_.wait_value(flag, at_least); }
  void call(std::function<void()> function) override { real_.call(std::move(function)); }
  void record(Event& event) override {
    ++records[&event];
    real_.record(event);
  }
  void wait(const Event& event) override { real_.wait(event); }
  bool done() override { return real_.done(); }
  void synchronize(Deadline deadline) override { real_.synchronize(deadline); }

  int copies = 0;
  std::map<const Event*, int> records;

 private:
  Stream& real_;
};

// Each record costs a call of the driver.
TEST(ProxyOnStreams, ACallRecordsNoEventTwice) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  ranks.machines_apart = true;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    const auto real = group.platform()->open_stream(gpu_of_rank(group));
    WatchedStream stream(*real);
    GpuNumbers numbers(group, 1000, of_rank(group.rank()));
    group.all_reduce(numbers.elements(), numbers.elements(), ReduceOp::sum, Mode::on(stream));
    real->synchronize(Deadline::in(60));
    require_that(!stream.records.empty(), "the end of the call is recorded");
    for (const auto& [event, times] : stream.records)
      require_that(times == 1, "an event is recorded once, not " + std::to_string(times) + " times");
  }),
            no_problems);
}

// An exchange whose second array finds no host memory raises before the stream has been told to read the first one.
// Faults: gpus K
TEST(ProxyOnStreams, ACallWithoutHostMemoryRaisesAndNothingReadsItsArrays) {
  TestRanks ranks(2);
  ranks.machines_apart = true;
  ranks.platform_of = [](int) {
    VirtualMachine machine;
    machine.gpus = 1;
    return std::make_shared<LittlePinned>(machine);
  };
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    const int other = 1 - group.rank();
    const auto stream = group.platform()->open_stream(gpu_of_rank(group));
    group.barrier(Mode::on(*stream));
    GpuNumbers small(group, 100, of_rank(group.rank())), came(group, 100);
    const Memory large = group.platform()->allocate(gpu_of_rank(group), 8 << 20, Allocation::gpu);
    const Exchange exchanges[] = {{other, small.elements(), {}, 0, 0},
                                  {other, {large.region(), DataType::uint8}, {}, 1, 1}};
    WatchedStream watched(*stream);
    const std::string error = error_of([&] { group.neighbor_exchange(exchanges, Mode::on(watched)); });
    require_that(error.find("no more memory can be pinned") != std::string::npos, "no memory, not: " + error);
    require_that(watched.copies == 0, "no copy out of an array of a call that has raised");
    group.sendrecv(small.elements(), other, came.elements(), other, 0, Mode::on(*stream));
    came.expect(*stream, of_rank(other), "a message after that");
    group.synchronize(*stream);
  }),
            no_problems);
}

// Counts pinned memory that is freed while a stream has work: CUDA would wait for all streams.
class CountsFrees : public Different {
 public:
  using Different::Different;
  Memory allocate(Place place, Bytes bytes, Allocation allocation) override {
    if (allocation != Allocation::pinned) return real().allocate(place, bytes, allocation);
    auto owner = std::make_unique<Owner>();
    owner->memory = real().allocate(place, bytes, allocation);
    owner->region = owner->memory.region();
    owner->allocation = allocation;
    return Memory(std::move(owner));
  }

  static inline Stream* watched = nullptr;
  static inline int frees = 0;

 private:
  struct Owner : MemoryOwner {
    ~Owner() override { frees += watched != nullptr && !watched->done(); }
    Memory memory;
  };
};

// Calls that wait for a stream keep host memory. If a program enqueues more of them than the memory suffices for, it
// waits.
// Faults: gpus T
TEST(ProxyOnStreams, AProgramThatIsFarAheadOfItsStreamWaitsForIt) {
  MachinesOfGpus ranks(2, 1);
  if (!tests_use_cuda())
    ranks.platform_of = [](int) {
      VirtualMachine machine;
      machine.gpus = 1;
      return std::make_shared<CountsFrees>(machine);
    };
  const auto problems = ranks.in_processes([](Group& group) {
    const int other = 1 - group.rank();
    const Memory flag = group.platform()->allocate(host(0), sizeof(std::uint64_t), Allocation::pinned);
    std::memset(flag.region().data, 0, sizeof(std::uint64_t));
    const auto stream = group.platform()->open_stream(gpu_of_rank(group));
    group.barrier(Mode::on(*stream));
    const std::size_t count = std::size_t{4} << 20;
    GpuNumbers mine(group, count, of_rank(group.rank())), came(group, count);
    const auto exchange = [&] { group.sendrecv(mine.elements(), other, came.elements(), other, 0, Mode::on(*stream)); };
    for (int i = 0; i < 10; ++i) exchange();
    came.expect(*stream, of_rank(other), "the last of many");
    group.set_timeout(group.rank() == 0 ? 1 : 20);
    stream->wait_value(flag.region().slice(0, sizeof(std::uint64_t)), 1);
    CountsFrees::watched = stream.get();
    try {
      for (int i = 0; i < 10; ++i) exchange();
    } catch (const Error&) {
      CountsFrees::watched = nullptr;
      if (CountsFrees::frees != 0) throw Error(ErrorKind::device, "memory was freed while the stream waited");
      std::atomic_ref(*reinterpret_cast<std::uint64_t*>(flag.region().data)).store(1);
      throw;
    }
  });
  ASSERT_EQ(problems.size(), 2U);
  for (const std::string& each : problems) EXPECT_NE(each.find("waited 1.00 s in send #"), std::string::npos) << each;
  EXPECT_NE(problems[0].find("keep all host memory"), std::string::npos) << problems[0];
}

}  // namespace
}  // namespace waywiser
