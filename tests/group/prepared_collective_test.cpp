#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/base/error_of.hpp"
#include "tests/comm/test_ranks.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/group/prepared.hpp"
#include "waywiser/group/scans.hpp"

namespace waywiser {
namespace {

using Values = std::vector<std::int64_t>;

struct PreparedCase {
  const char* operation;
  std::size_t in, out;  // elements, for each of `blocks` ranks
  bool shared_in, shared_out;
};
constexpr std::size_t block = 7;
constexpr PreparedCase prepared_cases[] = {{"all_reduce", 1, 1, false, false},    {"reduce", 1, 1, false, false},
                                           {"reduce_scatter", 1, 1, true, false}, {"broadcast", 0, 1, false, false},
                                           {"all_gather", 1, 1, false, true},     {"all_to_all", 1, 1, true, true},
                                           {"gather", 1, 1, false, true},         {"scatter", 1, 1, true, false},
                                           {"scan", 1, 1, false, false},          {"exscan", 1, 1, false, false}};

// The call that a start stands for.
void call_plainly(Group& group, std::string_view operation, ConstElements in, Elements out, int root) {
  const ReduceOp op = ReduceOp::sum;
  if (operation == "all_reduce") group.all_reduce(in, out, op);
  if (operation == "reduce") group.reduce(in, out, op, root);
  if (operation == "reduce_scatter") group.reduce_scatter(in, out, op);
  if (operation == "broadcast") group.broadcast(out, root);
  if (operation == "all_gather") group.all_gather(in, out);
  if (operation == "all_to_all") group.all_to_all(in, out);
  if (operation == "gather") group.gather(in, out, root);
  if (operation == "scatter") group.scatter(in, out, root);
  if (operation == "scan") scan(group, in, out, op);
  if (operation == "exscan") exscan(group, in, out, op);
}

// An array of the host or of the rank's GPU.
class PreparedArray {
 public:
  PreparedArray(Group& group, bool on_gpu, std::size_t elements)
      : platform_(*group.platform()),
        stream_(platform_.open_stream(gpu(group.rank()))),
        host_(platform_.allocate(host(0), bytes_for(elements), Allocation::pinned)),
        gpu_(platform_.allocate(gpu(group.rank()), bytes_for(elements), Allocation::gpu)),
        elements_(elements),
        on_gpu_(on_gpu) {}

  Elements elements() const {
    const Region all = (on_gpu_ ? gpu_ : host_).region();
    return {{all.data, elements_ * sizeof(std::int64_t), all.place}, DataType::int64};
  }
  Stream& stream() { return *stream_; }
  void fill(std::int64_t first) {
    std::iota(numbers(), numbers() + elements_, first);
    copy(gpu_, host_);
  }
  Values read() {
    copy(host_, gpu_);
    return {numbers(), numbers() + elements_};
  }

 private:
  static Bytes bytes_for(std::size_t elements) { return std::max<Bytes>(elements, 1) * sizeof(std::int64_t); }
  std::int64_t* numbers() { return reinterpret_cast<std::int64_t*>(host_.region().data); }
  void copy(const Memory& to, const Memory& from) {
    if (!on_gpu_) return;
    stream_->copy(to.region(), from.region());
    stream_->synchronize(Deadline::in(20));
  }

  Platform& platform_;
  std::unique_ptr<Stream> stream_;
  Memory host_, gpu_;
  std::size_t elements_;
  bool on_gpu_;
};

void compare_with_plain_calls(Group& group, const PreparedCase& each, bool on_gpu) {
  const auto ranks = static_cast<std::size_t>(group.size());
  const int root = group.size() - 1;
  PreparedArray in(group, on_gpu, each.in * block * (each.shared_in ? ranks : 1));
  PreparedArray out(group, on_gpu, each.out * block * (each.shared_out ? ranks : 1));
  PreparedArray expected(group, on_gpu, each.out * block * (each.shared_out ? ranks : 1));
  Prepared prepared =
      Prepared::of_collective(group, each.operation, in.elements(), out.elements(), ReduceOp::sum, root);
  for (int start = 0; start < 4; ++start) {
    in.fill(1000 * group.rank() + start);
    for (PreparedArray* array : {&out, &expected}) array->fill(-100 * group.rank() - start);
    call_plainly(group, each.operation, in.elements(), expected.elements(), root);
    if (on_gpu && start % 2 != 0) {
      prepared.start(in.stream());
      group.synchronize(in.stream());
    } else {
      prepared.start();
      prepared.wait();
    }
    require_that(out.read() == expected.read(), std::string(each.operation) + " start " + std::to_string(start));
  }
}

TEST(PreparedCollective, EachStartIsThePlainCall) {
  for (const bool on_gpu : {false, true}) {
    TestRanks ranks(3);
    ranks.virtual_gpus = 3;
    EXPECT_EQ(ranks.in_processes([&](Group& group) {
      for (const PreparedCase& each : prepared_cases) compare_with_plain_calls(group, each, on_gpu);
      group.barrier();
    }),
              no_problems)
        << (on_gpu ? "GPUs" : "hosts");
  }
}

TEST(PreparedCollective, TheFirstStartOnAGpuCanBeCaptured) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([&](Group& group) {
    PreparedArray in(group, true, block), out(group, true, block);
    Prepared prepared = Prepared::of_collective(group, "all_reduce", in.elements(), out.elements());
    require_that(prepared.why_staged().empty(), prepared.why_staged());
    const auto graph = in.stream().capture([&] { prepared.start(in.stream()); });
    for (int replay = 0; replay < 3; ++replay) {
      in.fill(group.rank() + replay);
      graph->launch(in.stream());
      group.synchronize(in.stream());
      require_that(out.read()[1] == 3 + 2 * replay, "replay " + std::to_string(replay));
    }
    group.barrier();
  }),
            no_problems);
}

TEST(PreparedCollective, WhatDoesNotFitIsToldToAllWhenItIsPrepared) {
  EXPECT_EQ(TestRanks(2).in_processes([](Group& group) {
    Values x(4), y(4), longer(4 + static_cast<std::size_t>(group.rank()));
    const auto refused = [&](std::string_view operation, Elements in, Elements out, int root, const char* words) {
      const std::string told =
          error_of([&] { static_cast<void>(Prepared::of_collective(group, operation, in, out, ReduceOp::sum, root)); });
      require_that(told.find(words) != std::string::npos, told);
    };
    const std::span all(x), other(y);
    refused("sum", all, other, 0, "rank 0: 'sum' is no collective operation");
    refused("barrier", all, other, 0, "rank 0: barrier is no collective of two arrays");
    refused("all_reduce", all, std::span(longer), 0, "rank 1: all_reduce: the output has 5 elements, 4 are needed");
    refused("all_reduce", std::span(longer), std::span(longer), 0, "what is prepared: rank 0 is in all_reduce");
    refused("broadcast", all, all, 2, "rank 0: broadcast from rank 2");
    refused("broadcast", all, all, group.rank(), "what is prepared: rank 0 is in broadcast");
    refused("all_to_all", all, all, 0, "rank 0: all_to_all");
    refused("scan", all.first(3), std::span(x).last(3), 0, "rank 0: scan");
    Prepared prepared = Prepared::of_collective(group, "all_reduce", all, other);
    prepared.start();
    require_that(error_of([&] { prepared.start(); }).find("before wait()") != std::string::npos, "a second start");
    prepared.wait();
    group.barrier();
  }),
            no_problems);
}

}  // namespace
}  // namespace waywiser
