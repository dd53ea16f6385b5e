#include "waywiser/group/prepared.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <type_traits>

#include "tests/base/error_of.hpp"
#include "tests/collective/made_up_exchange.hpp"
#include "tests/comm/test_ranks.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/device/platform.hpp"

namespace waywiser {
namespace {

constexpr Seconds prepared_patience = 20;

// The caller's arrays of one rank, in host memory or on its GPU, next to each other.
class CallersArrays {
 public:
  CallersArrays(Group& group, const Schedule& schedule, bool on_gpu) : schedule_(schedule), on_gpu_(on_gpu) {
    const Place place = on_gpu ? gpu_of_rank(group) : host(0);
    Bytes bytes = 16;
    for (const ScheduleArray& array : schedule.arrays) bytes += array.count * bytes_of(array.type) + 16;
    if (on_gpu) {
      memory_ = group.platform()->allocate(place, bytes, Allocation::gpu);
      pinned_ = group.platform()->allocate(host(0), bytes, Allocation::pinned);
      stream_ = group.platform()->open_stream(place);
    } else {
      plain_.resize(bytes);
    }
    const Region all = on_gpu ? memory_.region() : Region{plain_.data(), bytes, place};
    Bytes at = 0;
    for (const ScheduleArray& array : schedule.arrays) {
      const Bytes size = array.count * bytes_of(array.type);
      at = (at + 7) / 8 * 8;  // not always where whole vectors begin
      if (array.use <= ArrayUse::taken) elements_.emplace_back(all.slice(at, size), array.type);
      at += size;
    }
  }

  const std::vector<Elements>& elements() const { return elements_; }
  void fill(const std::vector<std::vector<std::byte>>& arrays) { each(arrays, true); }
  std::vector<std::vector<std::byte>> read() {
    std::vector<std::vector<std::byte>> arrays(schedule_.arrays.size());
    for (std::size_t i = 0; i < arrays.size(); ++i)
      arrays[i].resize(schedule_.arrays[i].count * bytes_of(schedule_.arrays[i].type));
    each(arrays, false);
    return arrays;
  }
  Stream& stream() { return *stream_; }

 private:
  template <typename Arrays>
  void each(Arrays& arrays, bool write) {
    std::size_t next = 0;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      if (schedule_.arrays[i].use > ArrayUse::taken) continue;
      const Region region = elements_[next++].region;
      if (region.bytes == 0) continue;
      std::byte* plain = on_gpu_ ? pinned_.region().data : region.data;
      const Region pinned = on_gpu_ ? pinned_.region().slice(0, region.bytes) : Region{};
      if (write) std::memcpy(plain, arrays[i].data(), region.bytes);
      if (on_gpu_) write ? stream_->copy(region, pinned) : stream_->copy(pinned, region);
      if (on_gpu_) stream_->synchronize(Deadline::in(prepared_patience));
      if constexpr (!std::is_const_v<Arrays>)
        if (!write) std::memcpy(arrays[i].data(), plain, region.bytes);
    }
  }

  const Schedule& schedule_;
  const bool on_gpu_;
  std::vector<std::byte> plain_;
  Memory memory_, pinned_;
  std::unique_ptr<Stream> stream_;
  std::vector<Elements> elements_;
};

// Counts launched kernels.
class CountingStream : public Stream {
 public:
  explicit CountingStream(Stream& real) : real_(real) {}
  Place place() const override { return real_.place(); }
  void copy(Region, ConstRegion) override { require_that(false, "nothing but kernels"); }
  const std::byte* reach(ConstRegion region) const override { return real_.reach(region); }
  void launch(const Kernel& kernel) override {
    ++kernels_;
    real_.launch(kernel);
  }
  void write_value(Region, std::uint64_t) override { require_that(false, "nothing but kernels"); }
  void wait_value(ConstRegion, std::uint64_t) override { require_that(false, "nothing but kernels"); }
  void call(std::function<void()>) override { require_that(false, "nothing but kernels"); }
  void record(Event& event) override { real_.record(event); }
  void wait(const Event& event) override { real_.wait(event); }
  bool done() override { return true; }
  void synchronize(Deadline) override {}

  int kernels() const { return kernels_; }

 private:
  Stream& real_;
  int kernels_ = 0;
};

// Different values in each start; the evaluator computes the expected results.
struct PreparedValues {
  PreparedValues(const std::vector<Schedule>& schedules, int start) {
    for (const Schedule& schedule : schedules) {
      arrays.push_back({0, 0, 0, {}, made_up_arrays(schedule)});
      for (std::size_t i = 0; i < schedule.arrays.size(); ++i)
        for (std::byte& byte : arrays.back().arrays[i])
          if (schedule.arrays[i].use == ArrayUse::given)
            byte = static_cast<std::byte>(static_cast<int>(byte) + 41 * start);
    }
    before = arrays;
    require_that(evaluate(schedules, arrays, {}).wrong.empty(), "a schedule that can be run");
  }
  void require_right(const Schedule& schedule, const std::vector<std::vector<std::byte>>& seen, int start) const {
    const auto& wanted = arrays[static_cast<std::size_t>(schedule.rank)].arrays;
    for (std::size_t i = 0; i < wanted.size(); ++i)
      if (schedule.arrays[i].use <= ArrayUse::taken)
        require_that(seen[i] == wanted[i], "array " + std::to_string(i) + " after start " + std::to_string(start));
  }

  std::vector<PlainArrays> before, arrays;
};

// Starts by the host or on a stream in turn; `replayed`: captured once, then replayed.
void run_prepared(Group& group, const std::vector<Schedule>& schedules, bool on_gpu, int starts, bool replayed) {
  const Schedule& mine = schedules[static_cast<std::size_t>(group.rank())];
  CallersArrays arrays(group, mine, on_gpu);
  Prepared prepared = Prepared::of_schedule(group, mine, arrays.elements());
  require_that(prepared.why_staged().empty(), prepared.why_staged());
  std::unique_ptr<StreamGraph> graph;
  if (replayed) graph = arrays.stream().capture([&] { prepared.start(arrays.stream()); });
  for (int start = 0; start < starts; ++start) {
    const PreparedValues values(schedules, start % 7);
    arrays.fill(values.before[static_cast<std::size_t>(group.rank())].arrays);
    if (graph) {
      graph->launch(arrays.stream());
      group.synchronize(arrays.stream());
    } else if (on_gpu && start % 2 == 0) {
      prepared.start(arrays.stream());
      group.synchronize(arrays.stream());
    } else {
      prepared.start();
      prepared.wait();
    }
    values.require_right(mine, arrays.read(), start);
  }
}

TEST(Prepared, SchedulesOfAllStepsTypesAndLayoutsAreRightOnHostsAndOnGpus) {
  for (const bool on_gpu : {false, true})
    for (const int size : {2, 3, 4}) {
      TestRanks ranks(size);
      ranks.virtual_gpus = on_gpu ? size : 0;
      EXPECT_EQ(ranks.in_processes([&](Group& group) {
        for (std::uint64_t seed = 0; seed < 6; ++seed)
          run_prepared(group, MadeUpExchange(size, seed, 50000).schedules(), on_gpu, 3, false);
        run_prepared(group, made_up_puts(size, 33), on_gpu, 3, false);
        for (const std::size_t count : {30011, 300007})  // the longer ones are copied when the receiver has come
          run_prepared(group, made_up_puts(size, count), on_gpu, 3, false);
        group.barrier();
      }),
                no_problems)
          << size << (on_gpu ? " GPUs" : " hosts");
    }
}

TEST(Prepared, IsStartedAThousandTimes) {
  for (const bool on_gpu : {false, true}) {
    TestRanks ranks(3);
    ranks.virtual_gpus = on_gpu ? 3 : 0;
    EXPECT_EQ(ranks.in_processes([&](Group& group) {
      run_prepared(group, MadeUpExchange(3, 4, 100).schedules(), on_gpu, 1000, false);
      group.barrier();
    }),
              no_problems);
  }
}

TEST(Prepared, WhatIsCapturedOnceIsReplayed) {
  TestRanks ranks(3);
  ranks.virtual_gpus = 3;
  EXPECT_EQ(ranks.in_processes([&](Group& group) {
    run_prepared(group, MadeUpExchange(3, 4, 30000).schedules(), true, 20, true);
    run_prepared(group, made_up_puts(3, 500), true, 20, true);
    group.barrier();
  }),
            no_problems);
}

// All ranks exchange with all others, by one kernel for any number of ranks.
TEST(Prepared, AnExchangeOfHostsOrGpus) {
  for (const bool on_gpu : {false, true}) {
    TestRanks ranks(4);
    ranks.virtual_gpus = on_gpu ? 4 : 0;
    EXPECT_EQ(ranks.in_processes([&](Group& group) {
      constexpr std::size_t count = 100;
      Schedule shapes{"", group.rank(), 4, 0, 0, 0, {}, {}, {}};
      for (int peer = 0; peer < 8; ++peer)
        shapes.arrays.push_back({DataType::int32, count, peer < 4 ? ArrayUse::given : ArrayUse::taken});
      CallersArrays arrays(group, shapes, on_gpu);
      std::vector<std::vector<std::byte>> values = made_up_arrays(shapes);
      arrays.fill(values);
      std::vector<Exchange> exchanges;
      for (int peer = 0; peer < 4; ++peer)
        exchanges.push_back({peer, arrays.elements()[static_cast<std::size_t>(peer)],
                             arrays.elements()[static_cast<std::size_t>(peer + 4)]});
      Prepared prepared = group.prepare_exchange(exchanges);
      for (int start = 0; start < 20; ++start) {
        prepared.start();
        prepared.wait();
      }
      const auto seen = arrays.read();
      for (int peer = 0; peer < 4; ++peer) {
        shapes.rank = peer;
        require_that(
            seen[static_cast<std::size_t>(peer + 4)] == made_up_arrays(shapes)[static_cast<std::size_t>(group.rank())],
            "what rank " + std::to_string(peer) + " gives");
      }
      group.barrier();
    }),
              no_problems);
  }
}

// With nothing prepared.
TEST(Prepared, AnExchangeOnAStreamIsOneKernelForAllNeighbours) {
  TestRanks ranks(4);
  ranks.virtual_gpus = 4;
  EXPECT_EQ(ranks.in_processes([&](Group& group) {
    constexpr std::size_t count = 100;
    Schedule shapes{"", group.rank(), 4, 0, 0, 0, {}};
    for (int peer = 0; peer < 8; ++peer)
      shapes.arrays.push_back({DataType::int32, count, peer < 4 ? ArrayUse::given : ArrayUse::taken});
    CallersArrays arrays(group, shapes, true);
    arrays.fill(made_up_arrays(shapes));
    group.barrier(Mode::on(arrays.stream()));
    std::vector<Exchange> exchanges;
    for (int peer = 0; peer < 4; ++peer)
      if (peer != group.rank())
        exchanges.push_back({peer, arrays.elements()[static_cast<std::size_t>(peer)],
                             arrays.elements()[static_cast<std::size_t>(peer + 4)]});
    if (arrays.stream().native() == nullptr) {  // a virtual GPU's
      CountingStream counted(arrays.stream());
      group.neighbor_exchange(exchanges, Mode::on(counted));
      require_that(counted.kernels() == 1, "one kernel");
    }
    const auto graph = arrays.stream().capture([&] { group.neighbor_exchange(exchanges, Mode::on(arrays.stream())); });
    for (int replay = 0; replay < 5; ++replay) graph->launch(arrays.stream());
    group.synchronize(arrays.stream());
    const auto seen = arrays.read();
    for (const Exchange& each : exchanges) {
      shapes.rank = each.rank;
      require_that(seen[static_cast<std::size_t>(each.rank + 4)] ==
                       made_up_arrays(shapes)[static_cast<std::size_t>(group.rank())],
                   "what rank " + std::to_string(each.rank) + " gives");
    }
    group.barrier();
  }),
            no_problems);
}

void expect_error(const std::string& found, const std::string& wanted) {
  require_that(found.find(wanted) != std::string::npos, "'" + found + "' instead of '" + wanted + "'");
}

TEST(Prepared, ReductionsThatThereAreNotAreRefused) {
  TestRanks ranks(1);
  ranks.virtual_gpus = 1;
  EXPECT_EQ(ranks.in_processes([&](Group& group) {
    for (const bool on_gpu : {false, true}) {
      const auto refusal = [&](DataType type, ReduceOp op) {
        Schedule sum{"sum", 0, 1, 0, 0, 0, {}, {}, {}};
        sum.arrays = {{type, 4, ArrayUse::given}, {type, 4, ArrayUse::taken}};
        sum.steps = {{StepKind::reduce, 0, -1, {Area::array, 0, 4, 1, 0}, {Area::array, 0, 4, 0, 0}}};
        CallersArrays arrays(group, sum, on_gpu);
        return error_of([&] { static_cast<void>(Prepared::of_schedule(group, sum, arrays.elements(), op)); });
      };
      expect_error(refusal(DataType::complex64, ReduceOp::min), "there is no min of complex64, which has no order");
      expect_error(refusal(DataType::complex64, ReduceOp::prod), "no error");
      expect_error(refusal(DataType::complex128, ReduceOp::prod),
                   on_gpu ? "prod of complex128 on a GPU is for collectives" : "no error");
    }
  }),
            no_problems);
}

TEST(Prepared, RanksThatDoNotFitAreToldWhenTheyPrepare) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([&](Group& group) {
    std::vector<Schedule> schedules = made_up_puts(2, 30);
    if (group.rank() == 1) schedules = made_up_puts(2, 40);
    const Schedule& mine = schedules[static_cast<std::size_t>(group.rank())];
    CallersArrays arrays(group, mine, true);
    expect_error(error_of([&] { static_cast<void>(Prepared::of_schedule(group, mine, arrays.elements())); }),
                 "rank 0 sends 2 messages of 120 bytes to rank 1, which takes 2 messages of 160 bytes");
    Schedule wrong = mine;
    wrong.steps.back().round = 0;
    expect_error(error_of([&] { static_cast<void>(Prepared::of_schedule(group, wrong, arrays.elements())); }),
                 "rank 0: a schedule: rounds do not ascend");
    run_prepared(group, made_up_puts(2, 30), true, 2, false);  // the group goes on
    group.barrier();
  }),
            no_problems);
}

TEST(Prepared, ASecondStartBeforeWaitIsRefused) {
  EXPECT_EQ(TestRanks(2).in_processes([&](Group& group) {
    const Schedule mine = made_up_puts(2, 30000)[static_cast<std::size_t>(group.rank())];
    CallersArrays arrays(group, mine, false);
    Prepared prepared = Prepared::of_schedule(group, mine, arrays.elements());
    std::vector<int> go(1);
    if (group.rank() == 1) group.recv(std::span(go), 0);
    prepared.start();
    if (group.rank() == 0) {
      expect_error(error_of([&] { prepared.start(); }), "started again before wait()");
      group.send(std::span(go), 1);
    }
    prepared.wait();
    group.barrier();
  }),
            no_problems);
}

TEST(Prepared, ARankThatDoesNotStartIsNamed) {
  for (const bool on_gpu : {false, true}) {
    TestRanks ranks(2);
    ranks.virtual_gpus = on_gpu ? 2 : 0;
    const std::vector<std::string> problems = ranks.in_processes([&](Group& group) {
      const Schedule mine = made_up_puts(2, 100)[static_cast<std::size_t>(group.rank())];
      CallersArrays arrays(group, mine, on_gpu);
      Prepared prepared = Prepared::of_schedule(group, mine, arrays.elements());
      prepared.start();
      prepared.wait();
      if (group.rank() == 0) {
        group.set_timeout(1);  // not earlier: a GPU takes its time to be opened
        prepared.start();
        prepared.wait();
      } else {
        group.set_timeout(40);  // rank 0 is the first to have waited too long
        std::vector<float> never(1);
        group.recv(std::span(never), 0);
      }
    });
    ASSERT_EQ(problems.size(), 2U);
    const std::string wanted = on_gpu ? "rank 1 did not come within 1.00 s in start #2 of a prepared puts" : "rank 1";
    EXPECT_NE(problems[0].find(wanted), std::string::npos) << problems[0];
  }
}

TEST(Prepared, ARankThatDiesEndsTheStartsOfAllOthers) {
  for (const bool on_gpu : {false, true}) {
    TestRanks ranks(2);
    ranks.virtual_gpus = on_gpu ? 2 : 0;
    const std::vector<std::string> problems = ranks.in_processes([&](Group& group) {
      const Schedule mine = made_up_puts(2, 100)[static_cast<std::size_t>(group.rank())];
      CallersArrays arrays(group, mine, on_gpu);
      Prepared prepared = Prepared::of_schedule(group, mine, arrays.elements());
      if (group.rank() == 1) std::_Exit(3);
      prepared.start();
      prepared.wait();
    });
    ASSERT_EQ(problems.size(), 2U);
    EXPECT_NE(problems[0].find("rank 1"), std::string::npos) << problems[0];
    EXPECT_EQ(problems[0].find("did not come within"), std::string::npos) << problems[0];
  }
}

// If all ranks have dropped an exchange, its memory is given back when the next one is prepared.
TEST(Prepared, MemoryOfWhatIsDroppedIsGivenBack) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([&](Group& group) {
    Bytes after_two = 0;
    for (int time = 0; time < 20; ++time) {
      run_prepared(group, made_up_puts(2, 100000), true, 1, false);
      if (time == 1) after_two = group.platform()->allocated_memory(gpu_of_rank(group).index);
    }
    require_that(group.platform()->allocated_memory(gpu_of_rank(group).index) == after_two, "as much as after two");
    group.barrier();
  }),
            no_problems);
}

// Messages by LL128 have slots in the memory that is set aside. When it has no room, they are stored straight into
// arrays.
TEST(Prepared, WithoutRoomForSlotsMessagesOfGpusAreStoredStraightIntoTheArrays) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([&](Group& group) {
    constexpr std::size_t count = std::size_t{1} << 18, many = 40;
    Schedule shapes{"", group.rank(), 2, 0, 0, 0, {}, {}, {}};
    shapes.arrays = {{DataType::float32, count, ArrayUse::given}, {DataType::float32, count, ArrayUse::taken}};
    const int other = 1 - group.rank();
    CallersArrays arrays(group, shapes, true);
    std::vector<Prepared> all;
    const auto explained = [&](const Prepared& prepared, const std::string& wanted) {
      require_that(prepared.explain().find(wanted) != std::string::npos, prepared.explain() + " instead of " + wanted);
    };
    while (all.size() < many)
      all.push_back(group.prepare_exchange(std::vector<Exchange>{{other, arrays.elements()[0], arrays.elements()[1]}}));
    explained(all.front(), "takes 1 by LL128");
    explained(all.back(), "takes 1 by direct");
    shapes.rank = other;
    for (Prepared* prepared : {&all.front(), &all.back()}) {
      arrays.fill(made_up_arrays(Schedule{"", group.rank(), 2, 0, 0, 0, {}, shapes.arrays, {}}));
      prepared->start();
      prepared->wait();
      require_that(arrays.read()[1] == made_up_arrays(shapes)[0], "what the other rank gives");
    }
    group.barrier();
  }),
            no_problems);
}

// Long messages in a ring: no rank sets memory aside for them.
TEST(Prepared, LongMessagesOfGpusAreStoredStraightIntoTheArrays) {
  TestRanks ranks(3);
  ranks.virtual_gpus = 3;
  EXPECT_EQ(ranks.in_processes([&](Group& group) {
    constexpr std::size_t count = std::size_t{1} << 20;
    Schedule shapes{"", group.rank(), 3, 0, 0, 0, {}, {}, {}};
    shapes.arrays = {{DataType::float32, count, ArrayUse::given}, {DataType::float32, count, ArrayUse::taken}};
    CallersArrays arrays(group, shapes, true);
    arrays.fill(made_up_arrays(shapes));
    group.barrier(Mode::on(arrays.stream()));
    const auto set_aside = [&] { return group.platform()->allocated_memory(gpu_of_rank(group).index); };
    const Bytes before = set_aside();
    const int next = (group.rank() + 1) % 3, previous = (group.rank() + 2) % 3;
    Prepared prepared = group.prepare_exchange(
        std::vector<Exchange>{{next, arrays.elements()[0], Elements({}, DataType::float32)},
                              {previous, Elements({}, DataType::float32), arrays.elements()[1]}});
    require_that(prepared.why_copied().empty(), prepared.why_copied());
    const Bytes more = set_aside() - before, slots = 2 * count * sizeof(float);
    require_that(more < slots, std::to_string(more) + " bytes are set aside");
    for (int start = 0; start < 3; ++start) {
      prepared.start();
      prepared.wait();
    }
    shapes.rank = previous;
    require_that(arrays.read()[1] == made_up_arrays(shapes)[0], "what the previous rank gives");
    group.barrier();
  }),
            no_problems);
}

TEST(Prepared, LongMessagesIntoListsAreCopiedAndSayWhy) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([&](Group& group) {
    constexpr std::size_t count = 400000;
    Schedule shapes{"", group.rank(), 2, 0, 0, 0, {}, {}, {}};
    shapes.arrays = {{DataType::float32, count, ArrayUse::given}, {DataType::float32, count, ArrayUse::taken}};
    CallersArrays arrays(group, shapes, true);
    arrays.fill(made_up_arrays(shapes));
    ArrayPart halves = ArrayPart::whole(DataType::float32, count);
    halves.apart = true;
    halves.layout = {count / 2, {}, {count / 2, 0}};
    const int other = 1 - group.rank();
    const std::vector<ArrayExchange> exchange{{other, ArrayPart::whole(DataType::float32, count), halves, 0, 0}};
    Prepared prepared = Prepared::of_parts(group, exchange, arrays.elements());
    expect_error(prepared.why_copied(),
                 "a message from rank " + std::to_string(other) + ": its elements are in a list");
    prepared.start();
    prepared.wait();
    shapes.rank = other;
    std::vector<std::byte> wanted = made_up_arrays(shapes)[0];
    std::ranges::rotate(wanted, wanted.begin() + static_cast<std::ptrdiff_t>(wanted.size() / 2));
    require_that(arrays.read()[1] == wanted, "the halves are exchanged");
    group.barrier();
  }),
            no_problems);
}

TEST(Prepared, WhereNoKernelServesAnExchangeGoesByMessagesAndSaysWhy) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  ranks.machines_apart = true;
  EXPECT_EQ(ranks.in_processes([&](Group& group) {
    Schedule shapes{"", group.rank(), 2, 0, 0, 0, {}, {}, {}};
    shapes.arrays = {{DataType::int32, 1000, ArrayUse::given}, {DataType::int32, 1000, ArrayUse::taken}};
    CallersArrays arrays(group, shapes, true);
    arrays.fill(made_up_arrays(shapes));
    const std::vector<Exchange> exchange{{1 - group.rank(), arrays.elements()[0], arrays.elements()[1]}};
    Prepared prepared = group.prepare_exchange(exchange);
    require_that(prepared.why_staged().find("several machines") != std::string::npos, prepared.why_staged());
    for (int start = 0; start < 3; ++start) {
      prepared.start();
      prepared.wait();
      prepared.start(arrays.stream());
      group.synchronize(arrays.stream());
    }
    shapes.rank = 1 - group.rank();
    require_that(arrays.read()[1] == made_up_arrays(shapes)[0], "what the other gives");
    const Schedule puts = made_up_puts(2, 10)[static_cast<std::size_t>(group.rank())];
    CallersArrays of_puts(group, puts, true);
    expect_error(error_of([&] { static_cast<void>(Prepared::of_schedule(group, puts, of_puts.elements())); }),
                 "several machines");
    group.barrier();
  }),
            no_problems);
}

}  // namespace
}  // namespace waywiser
