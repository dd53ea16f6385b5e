// Collectives of a Group on the memory of virtual GPUs, by kernels if these can, compared with the same call on the
// host.
#include <gtest/gtest.h>

#include <algorithm>
#include <complex>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>

#include "tests/comm/different.hpp"
#include "tests/comm/test_ranks.hpp"
#include "tests/policy/made_up_rows.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/collective/call.hpp"
#include "waywiser/comm/message/rendezvous_tag.hpp"
#include "waywiser/comm/shared_memory/lane.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"
#include "waywiser/kernels/block/float8.hpp"
#include "waywiser/kernels/block/half.hpp"
#include "waywiser/policy/chooser.hpp"

namespace waywiser {
namespace {

constexpr Seconds patience = 20;

// An array on the rank's GPU and its twin on the host, equal until a call has changed one of them.
class Twins {
 public:
  Twins(Group& group, DataType type, std::size_t count, int seed, Bytes offset = 8)  // not where memory begins
      : type_(type),
        bytes_(count * bytes_of(type)),
        offset_(offset),
        on_gpu_(group.platform()->allocate(gpu_of_rank(group), offset + bytes_ + 1, Allocation::gpu)),
        pinned_(group.platform()->allocate(host(0), offset + bytes_ + 1, Allocation::pinned)),
        on_host_(bytes_),
        stream_(group.platform()->open_stream(gpu_of_rank(group))) {
    for (std::size_t i = 0; i < count; ++i)
      store(i, static_cast<int>((i * 7 + static_cast<std::size_t>(seed)) % 3) + 1);
    if (bytes_ != 0) std::memcpy(pinned_.region().data, on_host_.data(), bytes_);
    stream_->copy(region(), pinned_.region().slice(0, bytes_));
    stream_->synchronize(Deadline::in(patience));
  }

  Elements gpu_elements() const { return {region(), type_}; }
  const Memory& memory() const { return on_gpu_; }
  Elements host_elements() { return {{on_host_.data(), bytes_, host(0)}, type_}; }
  bool equal() {
    stream_->copy(pinned_.region().slice(0, bytes_), region());
    stream_->synchronize(Deadline::in(patience));
    return bytes_ == 0 || std::memcmp(pinned_.region().data, on_host_.data(), bytes_) == 0;
  }
  // After equal(): describes where they differ.
  std::string difference() const {
    std::size_t different = 0, first = bytes_, last = 0;
    for (std::size_t i = 0; i < bytes_; ++i)
      if (pinned_.region().data[i] != on_host_[i]) {
        first = std::min(first, i);
        last = i;
        ++different;
      }
    if (different == 0) return {};
    std::string text = ": " + std::to_string(different) + " bytes differ, the first at " + std::to_string(first) +
                       ", the last at " + std::to_string(last) + " of " + std::to_string(bytes_) + ": ";
    for (std::size_t i = first; i < std::min(first + 32, bytes_); ++i)
      text += std::to_string(static_cast<int>(pinned_.region().data[i])) + "/" +
              std::to_string(static_cast<int>(on_host_[i])) + " ";
    return text;
  }

 private:
  Region region() const { return on_gpu_.region().slice(offset_, bytes_); }
  // Small whole numbers: sums of them are exact in every type and order.
  void store(std::size_t i, int value) {
    const auto put = [&]<typename T>(T number) {
      std::memcpy(on_host_.data() + i * sizeof number, &number, sizeof number);
    };
    constexpr std::uint16_t halves[] = {0, 0x3c00, 0x4000, 0x4200}, bfloats[] = {0, 0x3f80, 0x4000, 0x4040};
    switch (type_) {
      case DataType::float64: return put(static_cast<double>(value));
      case DataType::float32: return put(static_cast<float>(value));
      case DataType::float16: return put(halves[value]);
      case DataType::bfloat16: return put(bfloats[value]);
      case DataType::int8: return put(static_cast<std::int8_t>(value));
      case DataType::int16: return put(static_cast<std::int16_t>(value));
      case DataType::int32: return put(static_cast<std::int32_t>(value));
      case DataType::int64: return put(static_cast<std::int64_t>(value));
      case DataType::uint8: return put(static_cast<std::uint8_t>(value));
      case DataType::uint16: return put(static_cast<std::uint16_t>(value));
      case DataType::uint32: return put(static_cast<std::uint32_t>(value));
      case DataType::uint64: return put(static_cast<std::uint64_t>(value));
      case DataType::complex64: return put(std::complex<float>(static_cast<float>(value), 1));
      case DataType::complex128: return put(std::complex<double>(value, -1));
      case DataType::float8_e4m3fn: return put(to_float8_e4m3fn(static_cast<float>(value == 3 ? -1 : value)));
      case DataType::float8_e5m2: return put(to_float8_e5m2(static_cast<float>(value == 3 ? -1 : value)));
    }
  }

  DataType type_;
  std::size_t bytes_;
  Bytes offset_;
  Memory on_gpu_, pinned_;
  std::vector<std::byte> on_host_;
  std::unique_ptr<Stream> stream_;
};

// One call on the arrays of one kind of memory.
void call(Group& group, Collective operation, ReduceOp op, ConstElements in, Elements out, Stream* stream) {
  const Mode mode = stream != nullptr ? Mode::on(*stream) : Mode::wait;
  switch (operation) {
    case Collective::all_reduce: group.all_reduce(in, out, op, mode); return;
    case Collective::reduce_scatter: group.reduce_scatter(in, out, op, mode); return;
    case Collective::all_gather: group.all_gather(in, out, mode); return;
    case Collective::all_to_all: group.all_to_all(in, out, mode); return;
    case Collective::reduce: group.reduce(in, out, op, 1, mode); return;
    default: group.broadcast(out, 1, mode);
  }
}

std::size_t blocks(Collective operation, bool of_input, int ranks) {
  const bool in = operation == Collective::reduce_scatter || operation == Collective::all_to_all;
  const bool out = operation == Collective::all_gather || operation == Collective::all_to_all;
  return (of_input ? in : out) ? static_cast<std::size_t>(ranks) : 1;
}

void compare(Group& group, Collective operation, DataType type, ReduceOp op, std::size_t count, Stream* stream) {
  Twins in(group, type, count * blocks(operation, true, group.size()), group.rank());
  Twins out(group, type, count * blocks(operation, false, group.size()), group.rank() + 1);
  call(group, operation, op, in.gpu_elements(), out.gpu_elements(), stream);
  if (stream != nullptr) group.synchronize(*stream);
  call(group, operation, op, in.host_elements(), out.host_elements(), nullptr);
  require_that(in.equal() && out.equal(), std::string(name(operation)) + " of " + std::string(name(type)) + ", " +
                                              std::string(name(op)) + ", as on the host");
}

constexpr Collective operations[] = {Collective::all_reduce, Collective::reduce,     Collective::reduce_scatter,
                                     Collective::all_gather, Collective::all_to_all, Collective::broadcast};

void compare_all(Group& group) {
  const auto stream = group.platform()->open_stream(gpu_of_rank(group));
  int turn = 0;
  for (const Collective operation : operations)
    for (int type = 0; type < data_types; ++type) {
      const bool reduces = operation == Collective::all_reduce || operation == Collective::reduce ||
                           operation == Collective::reduce_scatter;
      for (int op = 0; op < (reduces ? reduce_ops : 1); ++op, ++turn) {
        if (!has_reduction(static_cast<DataType>(type), static_cast<ReduceOp>(op))) continue;
        constexpr std::size_t counts[] = {5, 300, 1};
        compare(group, operation, static_cast<DataType>(type), static_cast<ReduceOp>(op), counts[turn % 3],
                turn % 2 == 0 ? stream.get() : nullptr);
      }
    }
  group.barrier(Mode::on(*stream));
  group.synchronize(*stream);
}

TEST(GroupOnGpus, EveryCollectiveAndType) {
  for (const int size : {2, 3}) {
    TestRanks ranks(size);
    ranks.virtual_gpus = size;
    EXPECT_EQ(ranks.in_processes([](Group& group) {
      compare_all(group);
      require_that(group.why_staged().empty(), "kernels, not " + group.why_staged());
    }),
              no_problems);
  }
}

// Messages on streams: long and short, in both directions at once, and more than there are slots.
void exchange_on_stream(Group& group, std::size_t count, int times) {
  const auto stream = group.platform()->open_stream(gpu_of_rank(group));
  const int next = (group.rank() + 1) % group.size(), before = (group.rank() + group.size() - 1) % group.size();
  for (int i = 0; i < times; ++i) {
    Twins give(group, DataType::int16, count, group.rank() + i), take(group, DataType::int16, count, 7);
    group.sendrecv(give.gpu_elements(), next, take.gpu_elements(), before, 0, Mode::on(*stream));
    group.sendrecv(give.host_elements(), next, take.host_elements(), before);
    group.synchronize(*stream);
    const bool equal = take.equal();
    require_that(equal, "message " + std::to_string(i) + " of " + std::to_string(count) + take.difference());
  }
}

// The received data would overwrite data that are still being sent.
void refuse_arrays_that_overlap(Group& group) {
  const auto stream = group.platform()->open_stream(gpu_of_rank(group));
  const std::size_t mine = static_cast<std::size_t>(group.rank()), ranks = static_cast<std::size_t>(group.size());
  Twins all(group, DataType::int32, 100 * ranks, group.rank());
  const Elements whole = all.gpu_elements();
  const int other = (group.rank() + 1) % group.size(), before = (group.rank() + group.size() - 1) % group.size();
  const auto refused = [&](const std::string& what, const auto& call) {
    try {
      call();
    } catch (const Error& error) {
      require_that(error.kind() == ErrorKind::invalid_input && std::string(error.what()).find("overlap") < 1000, what);
      return;
    }
    require_that(false, "a refusal of " + what);
  };
  group.barrier(Mode::on(*stream));
  for (const int peer : {group.rank(), other}) {
    const int from = peer == other ? before : peer;
    refused("sendrecv of one array", [&] { group.sendrecv(whole, peer, whole, from, 0, Mode::on(*stream)); });
    refused("sendrecv within an array",
            [&] { group.sendrecv(whole.slice(0, 60), peer, whole.slice(40, 60), from, 0, Mode::on(*stream)); });
  }
  refused("neighbor_exchange", [&] {
    const Exchange both[] = {{other, whole.slice(0, 60), whole.slice(40, 60)}};
    group.neighbor_exchange(both, Mode::on(*stream));
  });
  const std::vector<std::size_t> counts(ranks, 100);
  refused("all_gather_v", [&] { group.all_gather_v(whole.slice(50, 100), whole, counts, Mode::on(*stream)); });
  group.all_gather_v(whole.slice(100 * mine, 100), whole, counts, Mode::on(*stream));
  group.synchronize(*stream);
  group.all_gather_v(all.host_elements().slice(100 * mine, 100), all.host_elements(), counts);
  require_that(all.equal(), "all_gather_v in place as on the host");
}

TEST(GroupOnGpus, ArraysThatOverlapAreRefused) {
  TestRanks ranks(3);
  ranks.virtual_gpus = 3;
  EXPECT_EQ(ranks.in_processes(refuse_arrays_that_overlap), no_problems);
}

// Each rank exchanges with both neighbours on a ring and with itself; of two ranks, each is both neighbours of the
// other. Tags match the parts, in another order than that of the list.
void exchange_with_neighbors(Group& group, std::size_t count) {
  const auto stream = group.platform()->open_stream(gpu_of_rank(group));
  const int ranks = group.size(), above = (group.rank() + 1) % ranks, below = (group.rank() + ranks - 1) % ranks;
  struct Side {
    int peer, give_tag, take_tag;
    std::size_t given, taken;
  };
  const Side sides[] = {{below, 6, 5, 0, 3},
                        {above, 5, 6, 3, 0},
                        {below, 2, 1, count + 13, count},
                        {above, 1, 2, count, count + 13},
                        {group.rank(), 4, 4, 77, 77}};
  std::vector<Twins> gives, takes;
  std::vector<Exchange> on_gpu, on_host;
  for (const Side& side : sides) {
    gives.emplace_back(group, DataType::int32, side.given, 10 * group.rank() + side.give_tag);
    takes.emplace_back(group, DataType::int32, side.taken, 7);
  }
  for (std::size_t i = 0; i < gives.size(); ++i) {
    const Side& side = sides[i];
    on_gpu.push_back({side.peer, gives[i].gpu_elements(), takes[i].gpu_elements(), side.give_tag, side.take_tag});
    on_host.push_back({side.peer, gives[i].host_elements(), takes[i].host_elements(), side.give_tag, side.take_tag});
  }
  group.neighbor_exchange(on_gpu, Mode::on(*stream));
  group.synchronize(*stream);
  group.neighbor_exchange(on_host);
  for (Twins& each : takes) require_that(each.equal(), "neighbor_exchange as on the host");
}

// CUDA is touched by the ranks' processes only: it does not survive a fork.
// The call on a stream of the GPU and the same call on the host.
template <typename OnStream, typename OnHost>
void compare_blocks(Group& group, std::size_t given, std::size_t taken, const std::string& what, Stream& stream,
                    OnStream on_stream, OnHost on_host) {
  Twins in(group, DataType::int32, given, group.rank());
  Twins out(group, DataType::int32, taken, group.rank() + 1);
  on_stream(in.gpu_elements(), out.gpu_elements());
  group.synchronize(stream);
  on_host(in.host_elements(), out.host_elements());
  require_that(in.equal() && out.equal(), what + " as on the host");
}

void blocks_of_all_sizes(Group& group) {
  const auto stream = group.platform()->open_stream(gpu_of_rank(group));
  const auto ranks = static_cast<std::size_t>(group.size()), me = static_cast<std::size_t>(group.rank());
  const std::size_t sizes[] = {3, 70001, 0, 1200};
  std::vector<std::size_t> counts, give, take;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    counts.push_back(sizes[rank % 4]);
    give.push_back((3 * me + 5 * rank) % 7 * 100);
    take.push_back((3 * rank + 5 * me) % 7 * 100);
  }
  const auto sum = [](const std::vector<std::size_t>& all) { return std::accumulate(all.begin(), all.end(), 0ul); };
  compare_blocks(
      group, counts[me], sum(counts), "all_gather_v", *stream,
      [&](auto in, auto out) { group.all_gather_v(in, out, counts, Mode::on(*stream)); },
      [&](auto in, auto out) { group.all_gather_v(in, out, counts); });
  compare_blocks(
      group, sum(give), sum(take), "all_to_all_v", *stream,
      [&](auto in, auto out) { group.all_to_all_v(in, give, out, take, Mode::on(*stream)); },
      [&](auto in, auto out) { group.all_to_all_v(in, give, out, take); });
  for (const int root : {0, group.size() - 1}) {
    compare_blocks(
        group, counts[me], sum(counts), "gather_v", *stream,
        [&](auto in, auto out) { group.gather_v(in, out, counts, root, Mode::on(*stream)); },
        [&](auto in, auto out) { group.gather_v(in, out, counts, root); });
    compare_blocks(
        group, sum(counts), counts[me], "scatter_v", *stream,
        [&](auto in, auto out) { group.scatter_v(in, counts, out, root, Mode::on(*stream)); },
        [&](auto in, auto out) { group.scatter_v(in, counts, out, root); });
    compare_blocks(
        group, 500, 500 * ranks, "gather", *stream,
        [&](auto in, auto out) { group.gather(in, out, root, Mode::on(*stream)); },
        [&](auto in, auto out) { group.gather(in, out, root); });
    compare_blocks(
        group, 500 * ranks, 500, "scatter", *stream,
        [&](auto in, auto out) { group.scatter(in, out, root, Mode::on(*stream)); },
        [&](auto in, auto out) { group.scatter(in, out, root); });
  }
}

TEST(GroupOnGpus, TheSameOnCudaGpus) {
  const int gpus = std::min(cuda_devices_here(), 4);
  if (gpus == 0) GTEST_SKIP() << "needs a CUDA GPU";
  TestRanks ranks(std::max(gpus, 2));
  ranks.cuda_gpus = true;
  ranks.kernels_on_shared_gpu = true;
  ranks.timeout = 60;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    compare_all(group);
    require_that(group.why_staged().empty(), "kernels, not " + group.why_staged());
    for (const std::size_t count : {3, 5001, 1500001}) exchange_on_stream(group, count, 6);
    blocks_of_all_sizes(group);
    for (const std::size_t count : {1, 300001}) exchange_with_neighbors(group, count);
    compare(group, Collective::all_reduce, DataType::float32, ReduceOp::sum, 20000000, nullptr);
    compare(group, Collective::reduce, DataType::float32, ReduceOp::avg, 20000000, nullptr);
    compare(group, Collective::all_gather, DataType::int16, ReduceOp::sum, 9000000, nullptr);
  }),
            no_problems);
}

TEST(GroupOnGpus, LargeArraysAndNoneInPlace) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    for (const Collective operation : operations)
      compare(group, operation, DataType::float32, ReduceOp::sum, 0, nullptr);
    compare(group, Collective::all_reduce, DataType::float32, ReduceOp::sum, 700000, nullptr);
    compare(group, Collective::reduce, DataType::float32, ReduceOp::sum, 700000, nullptr);
    compare(group, Collective::all_gather, DataType::int64, ReduceOp::sum, 100000, nullptr);
    Twins both(group, DataType::float64, 40000, group.rank());
    group.all_reduce(both.gpu_elements(), both.gpu_elements());
    group.all_reduce(both.host_elements(), both.host_elements());
    require_that(both.equal(), "the sum in place");
  }),
            no_problems);
}

TEST(GroupOnGpus, OneRankHasWhatItGives) {
  TestRanks ranks(1);
  ranks.virtual_gpus = 1;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    compare(group, Collective::all_reduce, DataType::int32, ReduceOp::avg, 10, nullptr);
    compare(group, Collective::all_to_all, DataType::int32, ReduceOp::sum, 10, nullptr);
  }),
            no_problems);
}

TEST(GroupOnGpus, OnTwoStreamsByTurns) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    const auto first = group.platform()->open_stream(gpu_of_rank(group));
    const auto second = group.platform()->open_stream(gpu_of_rank(group));
    Twins sum(group, DataType::int32, 1000, group.rank());
    for (int i = 0; i < 6; ++i) {
      group.all_reduce(sum.gpu_elements(), sum.gpu_elements(), ReduceOp::sum, Mode::on(i % 2 == 0 ? *first : *second));
      group.all_reduce(sum.host_elements(), sum.host_elements());
    }
    group.synchronize(*second);
    require_that(sum.equal(), "what one stream gave to the other");
  }),
            no_problems);
}

TEST(GroupOnGpus, WhatOneRankCannotAllDoByWayOfTheHost) {
  const auto machine = [](int rank) {
    VirtualMachine made;
    made.gpus = 2;
    if (rank == 1) made.no_peer_access = {{"", "a wall"}, {"a wall", ""}};
    return made;
  };
  EXPECT_EQ(on_platforms(
                2, [&](int rank) { return open_virtual_platform(machine(rank)); },
                [](Group& group) {
                  compare(group, Collective::all_reduce, DataType::float32, ReduceOp::sum, 100, nullptr);
                  const auto stream = group.platform()->open_stream(gpu_of_rank(group));
                  compare(group, Collective::all_gather, DataType::float32, ReduceOp::sum, 100, stream.get());
                  blocks_of_all_sizes(group);
                  exchange_with_neighbors(group, 5000);
                  const std::string why = group.why_staged();
                  require_that(why.find("rank 1: ") == 0 && why.find("a wall") != std::string::npos, why);
                }),
            no_problems);
}

// A message on a stream that goes through the host never matches a message of the user, whatever its tag.
TEST(GroupOnGpus, MessagesOnStreamsByWayOfTheHostHaveNoTagOfTheUser) {
  VirtualMachine machine;
  machine.gpus = 2;
  machine.no_peer_access = {{"", "a wall"}, {"a wall", ""}};
  EXPECT_EQ(on_platforms(
                2, [&](int) { return open_virtual_platform(machine); },
                [](Group& group) {
                  const int other = 1 - group.rank();
                  const auto stream = group.platform()->open_stream(gpu_of_rank(group));
                  Twins twins(group, DataType::int32, 100, group.rank());
                  group.barrier(Mode::on(*stream));
                  std::vector<std::int32_t> plain(100, group.rank() == 0 ? 7 : 0);
                  if (group.rank() == 0) {
                    Future sent = group.send(std::span(plain), other, 0x7fff, Mode::begin);
                    group.send(twins.gpu_elements(), other, 0, Mode::on(*stream));
                    sent.wait();
                    group.send(twins.host_elements(), other, 1);
                  } else {
                    group.recv(twins.gpu_elements(), other, 0, Mode::on(*stream));
                    group.recv(std::span(plain), other, 0x7fff);
                    group.recv(twins.host_elements(), other, 1);
                  }
                  group.synchronize(*stream);
                  require_that(plain == std::vector<std::int32_t>(100, 7), "the message of the user");
                  require_that(twins.equal(), "the message on the stream");
                }),
            no_problems);
}

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

class WithoutNvlink : public Different {
 public:
  using Different::Different;
  std::optional<std::string> why_no_whole_lines(int gpu, int peer) const override {
    if (gpu == peer) return {};
    return "GPUs " + std::to_string(gpu) + " and " + std::to_string(peer) + " are not joined by NVLink";
  }
};

// Counts the memory of other processes that it opens, or refuses to share its own.
class Opening : public Different {
 public:
  // `why`: the reason why it shares nothing; empty: it shares.
  explicit Opening(const VirtualMachine& machine, std::string why = "") : Different(machine), why_(std::move(why)) {}
  SharedRegion share(ConstRegion region) override {
    if (!why_.empty()) throw Error(ErrorKind::unavailable, why_);
    return Different::share(region);
  }
  Memory open_shared(const SharedRegion& shared, Place user) override {
    ++opened;
    return Different::open_shared(shared, user);
  }
  int opened = 0;

 private:
  std::string why_;
};

std::shared_ptr<Platform> one_deceives(int rank) {
  VirtualMachine machine;
  machine.gpus = 2;
  if (rank == 0) return std::make_shared<Deceiver>(machine);
  return open_virtual_platform(machine);
}

std::shared_ptr<Platform> without_nvlink(int) {
  VirtualMachine machine;
  machine.gpus = 3;
  return std::make_shared<WithoutNvlink>(machine);
}

TEST(GroupOnGpus, NoLl128UnlessAllAreJoinedByNvlink) {
  const auto one_is_not = [](int rank) -> std::shared_ptr<Platform> {
    VirtualMachine machine;
    machine.gpus = 3;
    if (rank == 1) return without_nvlink(rank);
    return open_virtual_platform(machine);
  };
  EXPECT_EQ(on_platforms(3, one_is_not,
                         [](Group& group) {
                           for (const std::size_t count : {5000, 400000})
                             compare(group, Collective::all_reduce, DataType::float32, ReduceOp::sum, count, nullptr);
                           group.set_algorithm("LL128");
                           Twins sum(group, DataType::float32, 5000, 0);
                           try {
                             group.all_reduce(sum.gpu_elements(), sum.gpu_elements());
                             require_that(false, "no LL128");
                           } catch (const Error& error) {
                             const std::string why = error.what();
                             require_that(why.find("rank 1: GPUs 1 and 0 are not joined") != std::string::npos, why);
                           }
                         }),
            no_problems);
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

// From rank 0 to rank 1, without a stream; how often each has opened the other's memory.
void message_without_stream(Group& group, std::size_t count, Bytes offset, int opened_by_sender,
                            int opened_by_receiver) {
  auto& platform = dynamic_cast<Opening&>(*group.platform());
  platform.opened = 0;
  Twins array(group, DataType::float32, count, group.rank(), offset);
  group.barrier();  // the memory is still there when it is read
  if (group.rank() == 0) {
    group.send(array.gpu_elements(), 1);
    group.send(array.host_elements(), 1, 1);
  } else {
    group.recv(array.gpu_elements(), 0);
    group.recv(array.host_elements(), 0, 1);
  }
  require_that(array.equal(), std::to_string(count) + " elements");
  const int expected = group.rank() == 0 ? opened_by_sender : opened_by_receiver;
  require_that(platform.opened == expected, std::to_string(platform.opened) + " opened for " + std::to_string(count));
  group.barrier();
}

TEST(GroupOnGpus, TheReceiverReadsMessagesOfUpToAMebibyteWhereTheyAre) {
  VirtualMachine machine;
  machine.gpus = 2;
  EXPECT_EQ(on_platforms(
                2, [&](int) { return std::make_shared<Opening>(machine); },
                [](Group& group) {
                  message_without_stream(group, 1, 4, 0, 1);
                  message_without_stream(group, 2048, 16, 0, 1);
                  message_without_stream(group, 2049, 16, 0, 1);
                  message_without_stream(group, 5000, 4, 0, 1);
                  message_without_stream(group, 1 << 18, 16, 0, 1);
                  message_without_stream(group, (1 << 18) + 1, 16, 1, 0);
                }),
            no_problems);
}

std::shared_ptr<const Chooser> plan_for_messages(const Path& path, const std::optional<Path>& reading = {}) {
  Plan plan;
  std::vector<Path> paths{path};
  if (reading) paths.push_back(*reading);
  plan.rows = {made_up::message_row(paths, 0, 1 << 30, Operation::latency, {{gpu(1), gpu(0)}})};
  return std::make_shared<const Chooser>(std::move(plan));
}

TEST(GroupOnGpus, TheReceiverReadsWhereThePlanHasAKernelThatReads) {
  VirtualMachine machine;
  machine.gpus = 2;
  const auto opening = [&](int) { return std::make_shared<Opening>(machine); };
  const auto kernel = [](const char* direction) {
    return Path{"sm_copy", gpu(0), gpu(1), 2, {{"direction", direction}, {"blocks", "4"}, {"handle", "cuda_ipc"}}};
  };
  const Path engine{"copy_engine", gpu(0), gpu(1), 2, {{"handle", "cuda_ipc"}}};
  const auto problems_if = [&](bool receiver_reads, const std::shared_ptr<const Chooser>& plan) {
    const auto message = [receiver_reads](Group& group) {
      message_without_stream(group, 5000, 16, receiver_reads ? 0 : 1, receiver_reads ? 1 : 0);
    };
    return on_platforms(2, opening, message, plan);
  };
  EXPECT_EQ(problems_if(true, plan_for_messages(kernel("push"), kernel("pull"))), no_problems);
  EXPECT_EQ(problems_if(true, plan_for_messages(kernel("pull"))), no_problems);
  EXPECT_EQ(problems_if(false, plan_for_messages(kernel("push"))), no_problems);
  EXPECT_EQ(problems_if(false, plan_for_messages(engine, kernel("pull"))), no_problems);
  EXPECT_EQ(problems_if(false, plan_for_messages(engine)), no_problems);
}

// Messages are sent before they are asked for, on a GPU or on a host, and received in another order.
TEST(GroupOnGpus, MessagesThatAreThereEarly) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    for (const std::size_t count : {2, 2048, 5000}) {
      Twins to_gpu(group, DataType::float32, count, group.rank()), to_host(group, DataType::float32, count, 1);
      std::vector<float> on_host(count, 0);
      const auto check_host = [&] {
        const std::byte* expected = to_host.host_elements().region.data;
        require_that(std::memcmp(on_host.data(), expected, count * sizeof(float)) == 0, "what came to the host");
        on_host.assign(count, 0);
      };
      if (group.rank() == 0) {
        Future first = group.send(to_gpu.gpu_elements(), 1, 1, Mode::begin);
        Future second = group.send(to_host.gpu_elements(), 1, 2, Mode::begin);
        Future third = group.send(to_host.gpu_elements(), 1, 3, Mode::begin);
        group.barrier();
        for (Future* sent : {&first, &second, &third}) sent->wait();
      } else {
        group.barrier();
        Future taking = group.recv(std::span(on_host), 0, 2, Mode::begin);
        group.recv(to_gpu.gpu_elements(), 0, 1);
        taking.wait();
        check_host();
        group.recv(std::span(on_host), 0, 3);
        check_host();
      }
      if (group.rank() == 0) group.send(to_gpu.host_elements(), 1);
      if (group.rank() == 1) group.recv(to_gpu.host_elements(), 0);
      require_that(to_gpu.equal(), "what came to the GPU");
    }
  }),
            no_problems);
}

// More messages than there are numbers for announcements, received in the opposite order.
TEST(GroupOnGpus, ThousandsOfMessagesAtOnce) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    constexpr std::size_t messages = rts_numbers + 100;
    Twins array(group, DataType::int32, messages, group.rank());
    const auto element = [&](const Elements& all, std::size_t i) { return all.slice(i, 1); };
    std::vector<Future> sent;
    if (group.rank() == 0) {
      for (std::size_t i = 0; i < messages; ++i)
        sent.push_back(group.send(element(array.gpu_elements(), i), 1, static_cast<int>(i), Mode::begin));
      group.barrier();
      for (Future& each : sent) each.wait();
      group.send(array.host_elements(), 1);
    } else {
      group.barrier();
      for (std::size_t i = messages; i-- > 0;) group.recv(element(array.gpu_elements(), i), 0, static_cast<int>(i));
      group.recv(array.host_elements(), 0);
    }
    require_that(array.equal(), "every element in its place");
  }),
            no_problems);
}

// The sender waits for numbers: these are too long for the host.
TEST(GroupOnGpus, ThousandsOfLongMessagesAtOnce) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    constexpr std::size_t messages = rts_numbers + 100, each = longest_short / 4 + 1;
    Twins array(group, DataType::int32, messages * each, group.rank());
    std::vector<Future> sent;
    for (std::size_t i = 0; i < messages; ++i) {
      const Elements part = array.gpu_elements().slice(i * each, each);
      if (group.rank() == 0) sent.push_back(group.send(part, 1, 0, Mode::begin));
      if (group.rank() == 1) group.recv(part, 0);
    }
    for (Future& one : sent) one.wait();
    if (group.rank() == 0) group.send(array.host_elements(), 1);
    if (group.rank() == 1) group.recv(array.host_elements(), 0);
    require_that(array.equal(), "every element in its place");
  }),
            no_problems);
}

TEST(GroupOnGpus, ASenderThatCannotShareItsMemoryPutsItItself) {
  VirtualMachine machine;
  machine.gpus = 2;
  EXPECT_EQ(on_platforms(
                2, [&](int rank) { return std::make_shared<Opening>(machine, rank == 1 ? "" : "nothing is shared"); },
                [](Group& group) { message_without_stream(group, 5000, 16, 1, 0); }),
            no_problems);
  EXPECT_EQ(
      on_platforms(
          2,
          [&](int rank) { return std::make_shared<Opening>(machine, "rank " + std::to_string(rank) + " keeps all"); },
          [](Group& group) {
            message_without_stream(group, 5000, 16, 0, 0);
            const std::string why = group.why_staged(1 - group.rank());
            require_that(why == "rank 1 keeps all; the sender cannot share it: rank 0 keeps all", why);
          }),
      no_problems);
}

TEST(GroupOnGpus, EveryWayThatIsSet) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    for (const char* way : {"LL", "LL128", "one_shot", "two_shot_LL128", "two_shot(blocks=3,threads=64)", "host"}) {
      group.set_algorithm(way);
      compare(group, Collective::all_reduce, DataType::float32, ReduceOp::sum, 5000, nullptr);
    }
    group.set_algorithm("nccl");
    Twins sum(group, DataType::int32, 10, 0);
    try {
      group.all_reduce(sum.gpu_elements(), sum.gpu_elements());
      require_that(cuda_devices_here() > 1, "no NCCL for virtual GPUs, nor for ranks that share a GPU");
      group.all_reduce(sum.host_elements(), sum.host_elements());
      require_that(sum.equal(), "the sum by NCCL");
    } catch (const Error& error) {
      const std::string text = error.what();
      require_that(text.find("NCCL is for CUDA GPUs") != std::string::npos ||
                       text.find("ranks 0 and 1 share GPU") != std::string::npos,
                   text);
    }
    group.set_algorithm("");
    compare(group, Collective::all_reduce, DataType::float32, ReduceOp::sum, 50, nullptr);
  }),
            no_problems);
}

template <typename T>
bool is_nan(T value) {
  if constexpr (std::is_floating_point_v<T>)
    return std::isnan(value);
  else
    return std::isnan(to_float(value));
}

// The ranks' values cover every order of ranks. All algorithms of a GPU must give the same bits, and the bits of the
// host but for a NaN, whose bits CUDA's min.NaN chooses. Other tests look at the values of the host.
TEST(GroupOnGpus, NanAndSignedZeroAreAlikeInEveryWay) {
  TestRanks ranks(3);
  ranks.virtual_gpus = 3;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    const auto stream = group.platform()->open_stream(gpu_of_rank(group));
    const auto check = [&]<typename T>(auto narrow, T) {
      constexpr float nan = std::numeric_limits<float>::quiet_NaN();
      constexpr float values[] = {nan, 1, -0.0f, 0.0f, -nan, std::numeric_limits<float>::infinity(), -1};
      constexpr std::size_t count = 7 * 7 * 7;
      std::vector<T> mine(count), expected(count);
      for (std::size_t i = 0, turn = i; i < count; ++i, turn = i) {
        for (int rank = 0; rank < group.rank(); ++rank) turn /= 7;
        mine[i] = narrow(values[turn % 7]);
      }
      const Bytes bytes = count * sizeof(T);
      const Memory on_gpu = group.platform()->allocate(gpu_of_rank(group), bytes, Allocation::gpu);
      const Memory pinned = group.platform()->allocate(host(0), bytes, Allocation::pinned);
      const Region there = on_gpu.region().slice(0, bytes), here = pinned.region().slice(0, bytes);
      const DataType type = DataTypeOf<T>::value;
      for (const ReduceOp op : {ReduceOp::min, ReduceOp::max}) {
        group.set_algorithm("");
        group.all_reduce(std::span(mine), std::span(expected), op);
        std::vector<T> first;
        for (const char* way : {"LL", "LL128", "one_shot", "two_shot_LL128", "two_shot"}) {
          group.set_algorithm(way);
          std::memcpy(here.data, mine.data(), bytes);
          stream->copy(there, here);
          group.all_reduce(Elements(there, type), Elements(there, type), op, Mode::on(*stream));
          stream->copy(here, there);
          group.synchronize(*stream);
          std::vector<T> result(count);
          std::memcpy(result.data(), here.data, bytes);
          if (first.empty()) first = result;
          const std::string what = std::string(name(op)) + " of " + std::string(name(type)) + " by " + way;
          require_that(std::memcmp(result.data(), first.data(), bytes) == 0, what + ": unlike LL");
          for (std::size_t i = 0; i < count; ++i)
            require_that(
                std::memcmp(&result[i], &expected[i], sizeof(T)) == 0 || (is_nan(result[i]) && is_nan(expected[i])),
                what + ": unlike the host");
        }
      }
    };
    check([](float value) { return static_cast<double>(value); }, double());
    check([](float value) { return value; }, float());
    check(to_float16, Float16());
    check(to_bfloat16, Bfloat16());
    check(to_float8_e4m3fn, Float8E4m3());
    check(to_float8_e5m2, Float8E5m2());
  }),
            no_problems);
}

// An algorithm of a plan that does not run here is passed over; one that nobody knows is refused. A possible one is
// used: its grid is too large, which is an error.
TEST(GroupOnGpus, ThePlanSaysWhich) {
  const auto problems_with = [](const std::string& way) {
    TestRanks ranks(2);
    ranks.virtual_gpus = 2;
    ranks.chooser_of = [&](int) {
      Plan plan;
      plan.rows = {made_up::group_row("all_reduce", "gpu", 2, 0, 1 << 20, way),
                   made_up::group_row("broadcast", "host", 2, 0, 1 << 20, "binomial_tree")};
      return std::make_shared<const Chooser>(std::move(plan));
    };
    return ranks.in_processes([](Group& group) {
      compare(group, Collective::broadcast, DataType::float32, ReduceOp::sum, 50, nullptr);
      compare(group, Collective::all_reduce, DataType::float32, ReduceOp::sum, 50, nullptr);
    });
  };
  EXPECT_EQ(problems_with("nccl"), no_problems);
  EXPECT_EQ(problems_with("hierarchy"), no_problems);
  EXPECT_NE(problems_with("binomial")[0].find("plan: all_reduce of gpu arrays has no way 'binomial'"),
            std::string::npos);
  const auto problems = problems_with("one_shot(blocks=600,threads=64)");
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_NE((problems[0] + problems[1]).find("600 blocks"), std::string::npos) << problems[0] << problems[1];
}

TEST(GroupOnGpus, RanksThatShareAGpuGoByWayOfTheHost) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 1;
  ranks.kernels_on_shared_gpu = false;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    const Memory memory = group.platform()->allocate(gpu(0), 64, Allocation::gpu);
    const Elements all(memory.region(), DataType::uint8);
    group.broadcast(all, 0);
    require_that(group.why_staged().find("ranks 0 and 1 share GPU") == 0, group.why_staged());
  }),
            no_problems);
}

TEST(GroupOnGpus, RanksThatShareAGpuUseKernelsWhereThatIsWanted) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 1;
  ranks.kernels_on_shared_gpu = true;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    compare(group, Collective::all_reduce, DataType::float32, ReduceOp::sum, 5000, nullptr);
    require_that(group.why_staged().empty(), "kernels, not " + group.why_staged());
    exchange_on_stream(group, 5001, 6);
  }),
            no_problems);
}

TEST(GroupOnGpus, ARankThatDoesNotComeIsNamed) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  const auto problems = ranks.in_processes([](Group& group) {
    Twins sum(group, DataType::int32, 100, 0);
    group.all_reduce(sum.gpu_elements(), sum.gpu_elements());
    if (group.rank() == 0) group.set_timeout(1);
    if (group.rank() == 1) {
      group.recv(std::span<int>(), 0);  // never sent
      return;
    }
    group.all_reduce(sum.gpu_elements(), sum.gpu_elements());
  });
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_NE((problems[0] + problems[1]).find("rank 1 did not send"), std::string::npos) << problems[0] << problems[1];
}

TEST(GroupOnGpus, UnlikeCallsAreNamed) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  const auto problems = ranks.in_processes([](Group& group) {
    Twins sum(group, DataType::int32, 100, 0), longer(group, DataType::int32, 3000, 0);
    group.barrier(Mode::on(*group.platform()->open_stream(gpu_of_rank(group))));
    if (group.rank() == 0) {
      group.set_timeout(1);  // the first to give up
      group.broadcast(sum.gpu_elements(), 1);
    }
    if (group.rank() == 1) group.recv(std::span<int>(), 0);
    group.all_reduce(longer.gpu_elements(), longer.gpu_elements());
  });
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_NE((problems[0] + problems[1]).find("broadcast"), std::string::npos) << problems[0] << problems[1];
}

TEST(GroupOnGpus, MessagesOnStreams) {
  for (const int size : {2, 3}) {
    TestRanks ranks(size);
    ranks.virtual_gpus = size;
    EXPECT_EQ(ranks.in_processes([](Group& group) {
      group.barrier(Mode::on(*group.platform()->open_stream(gpu_of_rank(group))));
      exchange_on_stream(group, 3, 6);
      for (const std::size_t count : {2048, 2049, 2168, 2169, 5001, 1500001}) exchange_on_stream(group, count, 2);
      exchange_on_stream(group, 1000000, 6);
      exchange_on_stream(group, 6000001, 1);  // 12 MB in bulk
    }),
              no_problems);
  }
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

TEST(GroupOnGpus, BlocksOfAllSizesGoAsMessages) {
  for (const int size : {1, 2, 4}) {
    TestRanks ranks(size);
    ranks.virtual_gpus = size;
    EXPECT_EQ(ranks.in_processes([](Group& group) {
      blocks_of_all_sizes(group);
      for (const std::size_t count : {1, 70001}) exchange_with_neighbors(group, count);
    }),
              no_problems)
        << size << " ranks";
  }
}

TEST(GroupOnGpus, AnArrayOfTheHostOnAStreamIsRefused) {
  TestRanks ranks(1);
  ranks.virtual_gpus = 1;
  const std::vector<std::string> problems = ranks.in_processes([](Group& group) {
    const auto stream = group.platform()->open_stream(gpu(0));
    Twins in(group, DataType::int32, 10, 0), out(group, DataType::int32, 10, 1);
    group.gather(in.gpu_elements(), out.host_elements(), 0, Mode::on(*stream));
  });
  EXPECT_NE(problems[0].find("an array of the host on a GPU's stream"), std::string::npos) << problems[0];
}

// If a collective is refused at one rank only, it does not count as a call there.
TEST(GroupOnGpus, RanksAreInStepAfterACallThatOneWasRefused) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    const auto stream = group.platform()->open_stream(gpu_of_rank(group));
    Twins in(group, DataType::int32, 10, 0), out(group, DataType::int32, 20, 1);
    group.barrier(Mode::on(*stream));
    if (group.rank() == 0) {
      std::string refused;
      try {
        group.gather(in.gpu_elements(), out.host_elements(), 0, Mode::on(*stream));
      } catch (const Error& error) {
        refused = error.what();
      }
      require_that(refused.find("an array of the host") != std::string::npos, "a refusal: " + refused);
    }
    group.all_reduce(in.host_elements(), in.host_elements());
    group.gather(in.host_elements(), out.host_elements(), 0);
  }),
            no_problems);
}

TEST(GroupOnGpus, ManyMessagesAreOnTheirWayInOrder) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    const auto stream = group.platform()->open_stream(gpu_of_rank(group));
    const auto other = group.platform()->open_stream(gpu_of_rank(group));
    group.barrier(Mode::on(*stream));
    std::vector<Twins> arrays;
    for (int i = 0; i < 20; ++i) arrays.emplace_back(group, DataType::int32, 10 + 3 * static_cast<std::size_t>(i), i);
    for (int i = 0; i < 20; ++i) {
      const Elements all = arrays[static_cast<std::size_t>(i)].gpu_elements();
      if (group.rank() == 0) group.send(all, 1, 0, Mode::on(i % 2 == 0 ? *stream : *other));
      if (group.rank() == 1) group.recv(all, 0, 0, Mode::on(*stream));
    }
    group.synchronize(*other);
    group.synchronize(*stream);
    for (Twins& each : arrays) require_that(each.equal(), "what was sent in this place of the order");
  }),
            no_problems);
}

TEST(GroupOnGpus, AMessageOnAStreamThatNobodySendsIsAnError) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  const auto problems = ranks.in_processes([](Group& group) {
    const auto stream = group.platform()->open_stream(gpu_of_rank(group));
    Twins taken(group, DataType::int32, 10, 0);
    group.barrier(Mode::on(*stream));
    if (group.rank() == 0) group.set_timeout(1);
    if (group.rank() == 0) group.recv(taken.gpu_elements(), 1, 0, Mode::on(*stream));
    group.synchronize(*stream);
    group.barrier();
  });
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_NE(problems[0].find("rank 1 did not send within 1.00 s in a message of 10 int32"), std::string::npos)
      << problems[0];
}

// Kernels number the ranks of their part of a group, and a part of the job numbers its ranks: people want the job's.
TEST(GroupOnGpus, AStreamsErrorNamesRanksOfTheJob) {
  for (const bool machines : {false, true})
    for (const bool collective : {false, true}) {
      TestRanks ranks(4);
      ranks.virtual_gpus = 4;
      ranks.machines_apart = machines;
      ranks.ranks_of_machine = 2;
      const auto problems = ranks.in_processes([&](Group& group) {
        const auto stream = group.platform()->open_stream(gpu_of_rank(group));
        Twins given(group, DataType::int32, 10, 0), taken(group, DataType::int32, 10, 0);
        auto upper = group.split(group.rank() / 2);
        Group& used = machines && !collective ? group : *upper;
        const int other = &used == &group ? 3 : 1;
        upper->barrier(Mode::on(*stream));
        group.barrier(Mode::on(*stream));
        if (group.rank() == 2) group.set_timeout(1);
        if (group.rank() == 2 && collective)
          used.all_reduce(given.gpu_elements(), taken.gpu_elements(), ReduceOp::sum, Mode::on(*stream));
        if (group.rank() == 2 && !collective) used.recv(taken.gpu_elements(), other, 0, Mode::on(*stream));
        used.synchronize(*stream);
        group.barrier();
      });
      ASSERT_EQ(problems.size(), 4u);
      EXPECT_NE(problems[2].find("rank 2: rank 3 did not send within 1.00 s in "), std::string::npos) << problems[2];
    }
}

}  // namespace
}  // namespace waywiser
