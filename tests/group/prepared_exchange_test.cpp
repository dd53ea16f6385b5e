// Prepared exchanges with neighbours, on hosts and on GPUs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "tests/base/error_of.hpp"
#include "tests/collective/made_up_exchange.hpp"
#include "tests/comm/test_ranks.hpp"
#include "tests/group/callers_arrays.hpp"
#include "waywiser/group/prepared.hpp"

namespace waywiser {
namespace {

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
