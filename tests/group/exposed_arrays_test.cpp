// Sums and messages that go straight into arrays of GPUs which all have exposed.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "tests/comm/different.hpp"
#include "tests/comm/test_ranks.hpp"
#include "tests/group/compared_calls.hpp"
#include "tests/group/without_nvlink.hpp"
#include "waywiser/collective/call.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"

namespace waywiser {
namespace {

// A sum in `out`, twice in place.
void sum_into(Group& group, Twins& out, Stream* stream, const std::string& what) {
  Twins in(group, DataType::float32, out.gpu_elements().count(), group.rank());
  for (int time = 0; time < 3; ++time) {
    call(group, Collective::all_reduce, ReduceOp::sum, time == 0 ? in.gpu_elements() : out.gpu_elements(),
         out.gpu_elements(), stream);
    call(group, Collective::all_reduce, ReduceOp::sum, time == 0 ? in.host_elements() : out.host_elements(),
         out.host_elements(), nullptr);
  }
  if (stream != nullptr) group.synchronize(*stream);
  require_that(in.equal() && out.equal(), what);
}

TEST(GroupOnGpus, OutputsThatAreExposedOrHaveBeen) {
  for (const int size : {2, 3}) {
    TestRanks ranks(size);
    ranks.virtual_gpus = size;
    EXPECT_EQ(ranks.in_processes([](Group& group) {
      group.set_algorithm("two_shot(blocks=3,threads=64)");
      const auto stream = group.platform()->open_stream(gpu_of_rank(group));
      const Bytes offset = 16 * static_cast<Bytes>(group.rank() + 1);
      Twins a(group, DataType::float32, 30000, 1, offset), b(group, DataType::float32, 50001, 2, 3 * offset),
          c(group, DataType::float32, 9000000, 3, offset);
      std::optional<Window> first(group.expose(a.memory().region())), second;
      sum_into(group, a, nullptr, "exposed before the first collective");
      sum_into(group, b, stream.get(), "not exposed");
      second.emplace(group.expose(b.memory().region()));
      sum_into(group, b, nullptr, "no whole number of 16 bytes");
      if (group.rank() == 0) first.reset();
      sum_into(group, a, stream.get(), "exposed at the others");
      first.reset();
      sum_into(group, a, nullptr, "no longer exposed");
      first.emplace(group.expose(c.memory().region()));
      sum_into(group, c, stream.get(), "of several kernels");
      sum_into(group, a, stream.get(), "where another one took its place");
      std::vector<Twins> many;
      std::vector<Window> windows;
      for (int i = 0; i < 16; ++i)
        windows.push_back(group.expose(many.emplace_back(group, DataType::float32, 400, i, offset).memory().region()));
      for (Twins& each : many) sum_into(group, each, nullptr, "more windows than slots");
      std::erase_if(windows, [i = 0](const auto&) mutable { return i++ % 2 == 0; });
      sum_into(group, many[3], nullptr, "between windows that are gone");
      if (group.rank() == 1) second.reset();
      group.barrier();
    }),
              no_problems);
  }
}

TEST(GroupOnGpus, WindowsGoWhileSumsAreOnTheirWay) {
  TestRanks ranks(3);
  ranks.virtual_gpus = 3;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    group.set_algorithm("two_shot(blocks=2,threads=64)");
    const auto stream = group.platform()->open_stream(gpu_of_rank(group));
    std::vector<Twins> outputs;
    std::vector<Window> windows;
    for (int i = 0; i < 24; ++i) {
      const Bytes offset = 16 * static_cast<Bytes>(group.rank() + i);
      outputs.emplace_back(group, DataType::float32, 20000, group.rank() + i, offset);
      windows.push_back(group.expose(outputs.back().memory().region()));
      const Elements all = outputs.back().gpu_elements(), on_host = outputs.back().host_elements();
      group.all_reduce(all, all, ReduceOp::sum, Mode::on(*stream));
      if ((i + group.rank()) % 3 == 0) windows.erase(windows.begin() + (i % 2 == 0 ? 0 : std::ssize(windows) - 1));
      group.all_reduce(on_host, on_host);
    }
    windows.clear();
    group.synchronize(*stream);
    for (Twins& each : outputs) require_that(each.equal(), "the sum");
  }),
            no_problems);
}

// While it deceives, it shares other memory: data that others store there do not arrive.
class Deceiver : public Different {
 public:
  using Different::Different;
  SharedRegion share(ConstRegion region) override {
    if (!deceives) return Different::share(region);
    decoy_ = real().allocate(region.place, region.bytes, Allocation::gpu);
    return Different::share(decoy_.region());
  }
  bool deceives = false;

 private:
  Memory decoy_;
};

// A rank that deceives gives the others a decoy.
Window expose_or_deceive(Group& group, Region region) {
  auto* deceiver = dynamic_cast<Deceiver*>(group.platform().get());
  if (deceiver != nullptr) deceiver->deceives = true;
  Window window = group.expose(region);
  if (deceiver != nullptr) deceiver->deceives = false;
  return window;
}

std::shared_ptr<Platform> one_deceives(int rank) {
  VirtualMachine machine;
  machine.gpus = 2;
  if (rank == 0) return std::make_shared<Deceiver>(machine);
  return open_virtual_platform(machine);
}

TEST(GroupOnGpus, SumsGoStraightIntoExposedOutputsAndNowhereElse) {
  for (const bool before : {true, false})
    EXPECT_EQ(on_platforms(2, one_deceives,
                           [before](Group& group) {
                             group.set_algorithm("two_shot");
                             Twins out(group, DataType::float32, 30000, 1, 16);
                             if (!before) sum_into(group, out, nullptr, "not exposed");
                             std::optional<Window> window(expose_or_deceive(group, out.memory().region()));
                             call(group, Collective::all_reduce, ReduceOp::sum, out.gpu_elements(), out.gpu_elements(),
                                  nullptr);
                             call(group, Collective::all_reduce, ReduceOp::sum, out.host_elements(),
                                  out.host_elements(), nullptr);
                             require_that(out.equal() == (group.rank() == 1), "only the decoy has the other's sums");
                             window.reset();
                             Twins again(group, DataType::float32, 30000, 1, 16);
                             sum_into(group, again, nullptr, "no longer exposed");
                           }),
              no_problems);
}

// In a ring: arrays that are exposed at some or all ranks, start at odd addresses or have odd lengths; of one piece,
// two pieces, and more pieces than are under way at once. The data change from message to message.
void exchange_into_exposed(Group& group) {
  const auto stream = group.platform()->open_stream(gpu_of_rank(group));
  const int next = (group.rank() + 1) % group.size(), before = (group.rank() + group.size() - 1) % group.size();
  group.barrier(Mode::on(*stream));
  for (const std::size_t count : {std::size_t{1} << 18, std::size_t{1500001}, std::size_t{5} << 20})
    for (const Bytes offset : {Bytes{16}, Bytes{8}}) {
      Twins shown(group, DataType::float32, count, 100, offset), hidden(group, DataType::float32, count, 101, offset);
      const Window window = group.expose(shown.memory().region());
      for (int i = 0; i < 4; ++i) {
        Twins give(group, DataType::float32, count, group.rank() + i);
        Twins& take = (i + group.rank() * (i / 2)) % 2 == 0 ? shown : hidden;
        group.sendrecv(give.gpu_elements(), next, take.gpu_elements(), before, 0, Mode::on(*stream));
        group.sendrecv(give.host_elements(), next, take.host_elements(), before);
        group.synchronize(*stream);
        require_that(shown.equal() && hidden.equal(), "message " + std::to_string(i) + " of " + std::to_string(count));
      }
      group.barrier();
    }
}

TEST(GroupOnGpus, MessagesIntoExposedArrays) {
  for (const int size : {2, 3}) {
    TestRanks ranks(size);
    ranks.virtual_gpus = size;
    EXPECT_EQ(ranks.in_processes(exchange_into_exposed), no_problems);
  }
}

TEST(GroupOnGpus, MessagesWithoutLl128) {
  EXPECT_EQ(on_platforms(3, without_nvlink,
                         [](Group& group) {
                           group.barrier(Mode::on(*group.platform()->open_stream(gpu_of_rank(group))));
                           for (const std::size_t count : {3, 5001, 1500001}) exchange_on_stream(group, count, 2);
                           exchange_into_exposed(group);
                         }),
            no_problems);
}

TEST(GroupOnGpus, LongMessagesGoStraightIntoExposedArraysAndNowhereElse) {
  EXPECT_EQ(on_platforms(2, one_deceives,
                         [](Group& group) {
                           const auto stream = group.platform()->open_stream(gpu_of_rank(group));
                           group.barrier(Mode::on(*stream));
                           constexpr std::size_t count = std::size_t{10} << 20;  // five pieces of each block of threads
                           Twins give(group, DataType::float32, count, group.rank(), 16);
                           Twins take(group, DataType::float32, count, 7, 16);
                           for (const bool exposed : {false, true, false}) {
                             std::optional<Window> window;
                             if (exposed) window.emplace(expose_or_deceive(group, take.memory().region()));
                             const int other = 1 - group.rank();
                             group.sendrecv(give.gpu_elements(), other, take.gpu_elements(), other, 0,
                                            Mode::on(*stream));
                             group.sendrecv(give.host_elements(), other, take.host_elements(), other);
                             group.synchronize(*stream);
                             const bool decoy = exposed && group.rank() == 0;
                             require_that(take.equal() != decoy, decoy ? "only the decoy has all" : "all has come");
                             Twins next(group, DataType::float32, count, 8, 16);
                             std::swap(take, next);
                             group.barrier();
                           }
                         }),
            no_problems);
}

}  // namespace
}  // namespace waywiser
