#include <gtest/gtest.h>

#include <cstring>

#include "tests/base/error_of.hpp"
#include "tests/heap/heap_ranks.hpp"
#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

using one_sided::Comparison, one_sided::SignalOp;

constexpr Bytes signal_at = 0, read_at = 8, taken_at = 64, given_at = 512, block_bytes = 400;

// A block of 100 numbers of the host that goes into a heap, and one that comes out of it.
class HostBlocks {
 public:
  HostBlocks(Group& group, Place place)
      : platform_(place.is_gpu() ? group.platform() : std::shared_ptr<Platform>(open_host_platform())),
        memory_(platform_->allocate(host(0), 2 * block_bytes, Allocation::pinned)),
        stream(platform_->open_stream(place)) {}

  Region given() const { return memory_.region().slice(0, block_bytes); }
  Region taken() const { return memory_.region().slice(block_bytes, block_bytes); }
  void fill(int value) const { std::fill_n(reinterpret_cast<int*>(given().data), block_bytes / 4, value); }
  bool has_come(int value) const {
    const int* numbers = reinterpret_cast<const int*>(taken().data);
    return std::all_of(numbers, numbers + block_bytes / 4, [&](int each) { return each == value; });
  }

 private:
  std::shared_ptr<Platform> platform_;
  Memory memory_;

 public:
  const std::unique_ptr<Stream> stream;
};

TEST(HeapStream, PutsSignalsAndWaitsAreInTheOrderOfAStream) {
  EXPECT_EQ(problems_of(3,
                        [](Group& group, Place place) {
                          Heap heap(group, "streams", place, 4096);
                          const HeapTeam team = heap.world();
                          const HostBlocks blocks(group, place);
                          Stream& stream = *blocks.stream;
                          const int right = (group.rank() + 1) % 3, left = (group.rank() + 2) % 3;
                          group.barrier();
                          for (std::uint64_t turn = 1; turn <= 5; ++turn) {
                            blocks.fill(static_cast<int>(turn) * 10 + group.rank());
                            heap.put(stream, blocks.given(), right, taken_at);
                            heap.signal(stream, right, signal_at, turn);
                            heap.wait(stream, signal_at, Comparison::eq, turn, left);
                            stream.copy(blocks.taken(), heap.local().slice(taken_at, block_bytes));
                            heap.barrier(stream, team);
                            heap.synchronize(stream);
                            require_that(blocks.has_come(static_cast<int>(turn) * 10 + left),
                                         "the block of turn " + std::to_string(turn));
                          }
                          const auto refused = [&](const std::function<void()>& call, const std::string& text) {
                            const std::string said = error_of(call);
                            require_that(said.find(text) != std::string::npos, said);
                          };
                          refused([&] { heap.signal(stream, right, 4, 1); }, "a signal at offset 4");
                          refused([&] { heap.wait(stream, 4096, Comparison::eq, 1); }, "a signal at offset 4096");
                          refused([&] { heap.signal(stream, 3, 0, 1); }, "has no rank 3");
                          EXPECT_THROW(heap.put(stream, blocks.given(), right, 4000), Error);
                          group.barrier();
                        }),
            "");
}

// One graph, replayed: the neighbour's signals are counted, and none is lost or seen twice.
TEST(HeapStream, GraphsOfThemCanBeReplayed) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    Heap heap(group, "graph", gpu(group.rank()), 4096);
    const HeapTeam team = heap.world();
    const HostBlocks blocks(group, gpu(group.rank()));
    Stream& stream = *blocks.stream;
    const int other = 1 - group.rank();
    const auto graph = stream.capture([&] {
      stream.copy(heap.local().slice(given_at, block_bytes), blocks.given());
      heap.put(stream, heap.local().slice(given_at, block_bytes), other, taken_at);
      heap.signal(stream, other, signal_at, 2, SignalOp::add);
      heap.wait_and_take(stream, signal_at, 2, other);
      stream.copy(blocks.taken(), heap.local().slice(taken_at, block_bytes));
      heap.barrier(stream, team);
    });
    for (int turn = 0; turn < 6; ++turn) {
      blocks.fill(turn * 10 + group.rank());
      graph->launch(stream);
      heap.synchronize(stream);
      require_that(blocks.has_come(turn * 10 + other), "the block of replay " + std::to_string(turn));
    }
    stream.copy(blocks.taken(), heap.local().slice(0, block_bytes));
    heap.synchronize(stream);
    std::uint64_t left = 1;
    std::memcpy(&left, blocks.taken().data, sizeof left);
    require_that(left == 0, "all signals are taken");
    group.barrier();
  }),
            no_problems);
}

// Of three ranks, on streams and twice; what does not fit is refused at all ranks alike.
TEST(HeapStream, CollectivesAreAsPlainArraysSay) {
  using one_sided::TeamOp;
  EXPECT_EQ(problems_of(3,
                        [](Group& group, Place place) {
                          Heap heap(group, "collectives", place, 4096);
                          const HeapTeam team = heap.world();
                          const HostBlocks blocks(group, place);
                          Stream& stream = *blocks.stream;
                          constexpr Bytes to = 2048;
                          const int rank = group.rank();
                          const auto numbers = [&] {
                            stream.copy(blocks.taken(), heap.local().slice(to, block_bytes));
                            heap.synchronize(stream);
                            const int* first = reinterpret_cast<const int*>(blocks.taken().data);
                            return std::vector<int>(first, first + block_bytes / 4);
                          };
                          for (int turn = 0; turn < 2; ++turn) {
                            blocks.fill(10 * turn + rank);
                            heap.put(stream, blocks.given(), rank, given_at);
                            heap.broadcast(stream, team, to, given_at, 40, 1);
                            require_that(numbers()[9] == 10 * turn + 1, "broadcast");
                            heap.all_gather(stream, team, to, given_at, 40);
                            const std::vector<int> gathered = numbers();
                            for (int from = 0; from < 3; ++from)
                              require_that(gathered[static_cast<std::size_t>(10 * from)] == 10 * turn + from,
                                           "all_gather");
                            heap.all_to_all(stream, team, to, given_at, 40);
                            require_that(numbers() == gathered, "all_to_all");
                            heap.reduce(stream, team, to, given_at, 10, DataType::int32, TeamOp::sum);
                            require_that(numbers()[9] == 30 * turn + 3, "reduce");
                            heap.reduce(stream, team, to, to, 10, DataType::int32, TeamOp::maximum);
                            require_that(numbers()[9] == 30 * turn + 3, "reduce in place");
                          }
                          const auto refused = [&](const std::function<void()>& call, const std::string& text) {
                            const std::string said = error_of(call);
                            require_that(said.find(text) != std::string::npos, said);
                          };
                          refused([&] { heap.broadcast(stream, team, 0, 64, 8, 3); }, "root 3 of a team of 3");
                          refused([&] { heap.all_gather(stream, team, 0, 8, 8); }, "overlap");
                          refused([&] { heap.all_gather(stream, team, 0, 0, Bytes{1} << 63); }, "3 parts of");
                          refused([&] { heap.all_to_all(stream, team, 0, 4090, 8); }, "outside");
                          refused([&] { heap.reduce(stream, team, 0, 8, 1, DataType::float32, TeamOp::bit_or); },
                                  "cannot combine float32 by its bits");
                          refused([&] { heap.reduce(stream, team, 0, 64, 1, DataType::complex64, TeamOp::sum); },
                                  "cannot combine complex64");
                          refused([&] { heap.reduce(stream, team, 2, 64, 1, DataType::float32, TeamOp::sum); },
                                  "elements of 4 bytes at offsets 2 and 64");
                          group.barrier();
                        }),
            "");
}

TEST(HeapStream, AWaitThatNobodyEndsIsAnError) {
  for (const bool on_gpu : {false, true}) {
    TestRanks ranks(2);
    ranks.virtual_gpus = on_gpu ? 2 : 0;
    const auto problems = ranks.in_processes([&](Group& group) {
      const Place place = on_gpu ? gpu(group.rank()) : host(0);
      Heap heap(group, "late", place, 64);
      heap.set_deadline(0.05);
      if (group.rank() == 1) return;
      const HostBlocks blocks(group, place);
      heap.wait_and_take(*blocks.stream, read_at, 1, 1);
      heap.synchronize(*blocks.stream);
    });
    EXPECT_NE(problems[0].find("rank 0, heap 'late': rank 1 did not change the word at offset 8 within 50.0 ms: it is "
                               "0, and a kernel waits for >= 1"),
              std::string::npos)
        << problems[0];
  }
}

}  // namespace
}  // namespace waywiser
