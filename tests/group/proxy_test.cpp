// Operations on streams where no kernel serves all ranks: two machines of virtual GPUs, and the progress thread between
// them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <numeric>

#include "tests/base/error_of.hpp"
#include "tests/comm/different.hpp"
#include "tests/comm/test_ranks.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/collective/gpu/kernel_domain.hpp"
#include "waywiser/device/platform.hpp"

namespace waywiser {
namespace {

constexpr Seconds much_time = 20;

// The number of ranks on each machine; each rank has its own virtual GPU.
struct Machines : TestRanks {
  Machines(int machines, int ranks_of_each) : TestRanks(machines * ranks_of_each) {
    virtual_gpus = ranks_of_each;
    machines_apart = true;
    ranks_of_machine = ranks_of_each;
  }
};

// GpuNumbers on this rank's GPU.
class GpuNumbers {
 public:
  GpuNumbers(Group& group, std::size_t count)
      : count_(count),
        memory_(group.platform()->allocate(gpu_of_rank(group), bytes(), Allocation::gpu)),
        host_(group.platform()->allocate(host(0), bytes(), Allocation::pinned)),
        stream_(group.platform()->open_stream(gpu_of_rank(group))) {
    set([](std::size_t) { return -1; });
  }
  GpuNumbers(Group& group, std::size_t count, const std::function<int(std::size_t)>& value) : GpuNumbers(group, count) {
    set(value);
  }

  void set(const std::function<int(std::size_t)>& value) {
    for (std::size_t i = 0; i < count_; ++i) on_host()[i] = value(i);
    stream_->copy(memory_.region().slice(0, bytes()), host_.region().slice(0, bytes()));
    stream_->synchronize(Deadline::in(much_time));
  }
  Elements elements() const { return {memory_.region().slice(0, count_ * sizeof(std::int32_t)), DataType::int32}; }
  // The received array, in stream order.
  void enqueue_look(Stream& stream) {
    stream.copy(host_.region().slice(0, bytes()), memory_.region().slice(0, bytes()));
  }
  bool are(const std::function<int(std::size_t)>& value) const {
    for (std::size_t i = 0; i < count_; ++i)
      if (on_host()[i] != value(i)) return false;
    return true;
  }
  void expect(Stream& stream, const std::function<int(std::size_t)>& value, const std::string& what) {
    enqueue_look(stream);
    stream.synchronize(Deadline::in(much_time));
    for (std::size_t i = 0; i < count_; ++i)
      require_that(on_host()[i] == value(i), what + ": number " + std::to_string(i) + " is " +
                                                 std::to_string(on_host()[i]) + ", not " + std::to_string(value(i)));
  }

 private:
  Bytes bytes() const { return std::max<Bytes>(count_, 1) * sizeof(std::int32_t); }
  std::int32_t* on_host() const { return reinterpret_cast<std::int32_t*>(host_.region().data); }

  std::size_t count_;
  Memory memory_, host_;
  std::unique_ptr<Stream> stream_;
};

int value_of(int rank, std::size_t i) { return rank * 1000 + static_cast<int>(i % 997); }

std::function<int(std::size_t)> of_rank(int rank) {
  return [rank](std::size_t i) { return value_of(rank, i); };
}

// All collectives, verified by the stream alone: nothing of the group is called between an operation and its result.
void every_collective(Group& group, std::size_t count, Stream& stream) {
  const auto ranks = static_cast<std::size_t>(group.size());
  const int me = group.rank();
  const Mode mode = Mode::on(stream);
  const auto sum_at = [&](std::size_t i) {
    int sum = 0;
    for (int rank = 0; rank < group.size(); ++rank) sum += value_of(rank, i);
    return sum;
  };
  GpuNumbers one(group, count, of_rank(me)), other(group, count);
  GpuNumbers all(group, count * ranks, of_rank(me)), blocks(group, count * ranks);
  group.all_reduce(one.elements(), other.elements(), ReduceOp::sum, mode);
  other.expect(stream, sum_at, "all_reduce");
  group.all_reduce(one.elements(), other.elements(), ReduceOp::avg, mode);
  other.expect(stream, [&](std::size_t i) { return sum_at(i) / group.size(); }, "average");
  group.all_gather(one.elements(), blocks.elements(), mode);
  blocks.expect(stream, [&](std::size_t i) { return value_of(static_cast<int>(i / count), i % count); }, "all_gather");
  group.reduce_scatter(all.elements(), other.elements(), ReduceOp::sum, mode);
  other.expect(
      stream, [&](std::size_t i) { return sum_at(static_cast<std::size_t>(me) * count + i); }, "reduce_scatter");
  group.all_to_all(all.elements(), blocks.elements(), mode);
  blocks.expect(
      stream,
      [&](std::size_t i) {
        return value_of(static_cast<int>(i / count), static_cast<std::size_t>(me) * count + i % count);
      },
      "all_to_all");
  for (const int root : {0, group.size() - 1}) {
    GpuNumbers sent(group, count, of_rank(me));
    group.broadcast(sent.elements(), root, mode);
    sent.expect(stream, of_rank(root), "broadcast");
    group.reduce(one.elements(), other.elements(), ReduceOp::max, root, mode);
    if (me == root) other.expect(stream, of_rank(group.size() - 1), "reduce");
    group.gather(one.elements(), blocks.elements(), root, mode);
    if (me == root)
      blocks.expect(stream, [&](std::size_t i) { return value_of(static_cast<int>(i / count), i % count); }, "gather");
    group.scatter(all.elements(), other.elements(), root, mode);
    other.expect(
        stream, [&](std::size_t i) { return value_of(root, static_cast<std::size_t>(me) * count + i); }, "scatter");
  }
  one.set(of_rank(me));
  group.all_reduce(one.elements(), one.elements(), ReduceOp::sum, mode);
  one.expect(stream, sum_at, "all_reduce in place");
  group.barrier(mode);
}

// Along a ring of all ranks: by kernels within a machine, by the hosts between machines.
void every_message(Group& group, std::size_t count, Stream& stream) {
  const int me = group.rank(), ranks = group.size(), above = (me + 1) % ranks, below = (me + ranks - 1) % ranks;
  const Mode mode = Mode::on(stream);
  GpuNumbers mine(group, count, of_rank(me)), from_below(group, count), from_above(group, count), itself(group, count);
  group.sendrecv(mine.elements(), above, from_below.elements(), below, 0, mode);
  from_below.expect(stream, of_rank(below), "sendrecv");
  if (me % 2 == 0 && above % 2 == 1) group.send(mine.elements(), above, 0, mode);
  if (me % 2 == 1) group.recv(from_above.elements(), below, 0, mode);
  if (me % 2 == 1) from_above.expect(stream, of_rank(below), "send and recv");
  const Exchange exchanges[] = {{above, mine.elements(), from_above.elements(), 1, 2},
                                {below, mine.elements(), from_below.elements(), 2, 1},
                                {me, mine.elements(), itself.elements(), 3, 3}};
  group.neighbor_exchange(exchanges, mode);
  from_above.expect(stream, of_rank(above), "neighbor_exchange from above");
  from_below.expect(stream, of_rank(below), "neighbor_exchange from below");
  itself.expect(stream, of_rank(me), "neighbor_exchange with itself");
}

void every_operation(Group& group) {
  const auto stream = group.platform()->open_stream(gpu_of_rank(group));
  group.barrier(Mode::on(*stream));
  for (const std::size_t count : {1ul, 700ul, 9001ul, 70000ul}) {
    every_collective(group, count, *stream);
    every_message(group, count, *stream);
  }
  group.synchronize(*stream);
}

TEST(ProxyOnStreams, EveryOperationOfTwoMachinesWithTwoGpusEach) {
  EXPECT_EQ(Machines(2, 2).in_processes(every_operation), no_problems);
}

TEST(ProxyOnStreams, EveryOperationOfRanksThatAreAllOnMachinesOfTheirOwn) {
  EXPECT_EQ(Machines(3, 1).in_processes(every_operation), no_problems);
}

// Machines of 7 and 5 ranks: parts of two sizes.
TEST(ProxyOnStreams, TwelveRanksOnTwoMachines) {
  TestRanks ranks(12);
  ranks.virtual_gpus = 7;
  ranks.machines_apart = true;
  ranks.ranks_of_machine = 7;
  ranks.timeout = 60;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    const auto stream = group.platform()->open_stream(gpu_of_rank(group));
    every_collective(group, 6000, *stream);
    every_message(group, 500, *stream);
    group.synchronize(*stream);
  }),
            no_problems);
}

// More ranks on one machine than one kernel serves: two parts of 5.
TEST(ProxyOnStreams, TenRanksOnOneMachine) {
  TestRanks ranks(10);
  ranks.virtual_gpus = 10;
  ranks.timeout = 60;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    const auto stream = group.platform()->open_stream(gpu_of_rank(group));
    every_collective(group, 300, *stream);
    every_message(group, 300, *stream);
    group.synchronize(*stream);
  }),
            no_problems);
}

// GPUs 0 and 2 do not reach each other: the other pairs go by kernels.
TEST(ProxyOnStreams, EachPairOfAMachineTakesTheKernelThatItCan) {
  if (tests_use_cuda()) GTEST_SKIP() << "only virtual GPUs can lack access to each other as the test wants";
  TestRanks ranks(3);
  ranks.virtual_gpus = 3;
  const std::string why = "no NVLink between them";
  ranks.no_peer_access = {{"", "", why}, {"", "", ""}, {why, "", ""}};
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    const auto stream = group.platform()->open_stream(gpu_of_rank(group));
    every_operation(group);
    require_that(!group.why_staged().empty(), "a reason why not all is by kernels");
    GpuNumbers mine(group, 100, of_rank(group.rank())), came(group, 100);
    const int me = group.rank();
    const auto message = [&](int from, int to) {
      if (me == from) group.send(mine.elements(), to, 0, Mode::on(*stream));
      if (me == to) group.recv(came.elements(), from, 0, Mode::on(*stream));
    };
    const auto graph = stream->capture([&] { message(0, 1); });
    graph->launch(*stream);
    if (me == 1) came.expect(*stream, of_rank(0), "a message in a graph");
    std::string refusal = "nothing";
    try {
      stream->capture([&] { message(0, 2); });
      refusal = "no refusal";
    } catch (const Error& error) {
      refusal = error.what();
    }
    if (me != 1) require_that(refusal.find("which no graph can capture: rank") != std::string::npos, refusal);
    group.synchronize(*stream);
  }),
            no_problems);
}

TEST(ProxyOnStreams, GraphsHoldWhatKernelsCarryAndRefuseTheRest) {
  EXPECT_EQ(Machines(2, 2).in_processes([](Group& group) {
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
  EXPECT_EQ(Machines(2, 1).in_processes([](Group& group) {
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
  EXPECT_EQ(Machines(2, 1).in_processes([](Group& group) {
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
  EXPECT_EQ(Machines(2, 2).in_processes([](Group& group) {
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
  void record(Event& event) override { real_.record(event); }
  void wait(const Event& event) override { real_.wait(event); }
  bool done() override { return real_.done(); }
  void synchronize(Deadline deadline) override { real_.synchronize(deadline); }

  int copies = 0;

 private:
  Stream& real_;
};

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
  Machines ranks(2, 1);
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

TEST(KernelDomains, ArePartsOfMachinesOfUpTo8Ranks) {
  using Parts = std::vector<std::vector<int>>;
  EXPECT_EQ(kernel_domains({0, 0, 0}), (Parts{{0, 1, 2}}));
  EXPECT_EQ(kernel_domains({0, 1, 0, 1}), (Parts{{0, 2}, {1, 3}}));
  const Parts of_one = kernel_domains(std::vector<int>(12, 0));
  EXPECT_EQ(of_one, (Parts{{0, 1, 2, 3, 4, 5}, {6, 7, 8, 9, 10, 11}}));
  const Parts odd = kernel_domains({0, 0, 0, 0, 0, 0, 0, 0, 0, 9});
  EXPECT_EQ(odd, (Parts{{0, 1, 2, 3}, {4, 5, 6, 7, 8}, {9}}));
}

}  // namespace
}  // namespace waywiser
