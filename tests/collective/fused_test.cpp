#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>

#include "tests/base/error_of.hpp"
#include "tests/collective/made_up_call.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/collective/default_choice.hpp"
#include "waywiser/collective/fused/fused_collective.hpp"
#include "waywiser/collective/fused/works.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"

namespace waywiser {
namespace {

constexpr FusedOptions small{256, 8192, 8192, 20};

// The ranks of one process, a virtual GPU each.
class FusedRanks {
 public:
  explicit FusedRanks(int ranks, const FusedOptions& options = small, Seconds delay = 0) {
    VirtualMachine machine;
    machine.gpus = ranks;
    machine.delay = delay;
    platform_ = open_virtual_platform(machine);
    for (int rank = 0; rank < ranks; ++rank) {
      streams_.push_back(platform_->open_stream(gpu(rank)));
      memories_.push_back(platform_->allocate(gpu(rank), FusedCollective::bytes_for(ranks, options), Allocation::gpu));
      members_.push_back(
          std::make_unique<FusedCollective>(*platform_, stream(rank), rank, ranks, options, memories_.back().region()));
      for (int peer = 0; peer < ranks; ++peer)
        if (peer != rank) platform_->set_peer_access(rank, peer, true);
    }
    std::vector<Region> landings;
    for (const auto& member : members_) landings.push_back(member->landing());
    for (const auto& member : members_) member->connect(landings);
  }

  int ranks() const { return static_cast<int>(members_.size()); }
  Stream& stream(int rank) { return *streams_[static_cast<std::size_t>(rank)]; }
  FusedCollective& member(int rank) { return *members_[static_cast<std::size_t>(rank)]; }
  Platform& platform() { return *platform_; }

 private:
  std::unique_ptr<Platform> platform_;
  std::vector<Memory> memories_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<std::unique_ptr<FusedCollective>> members_;
};

// The buffers of one rank on its GPU, `offset` bytes from where memory begins.
struct Buffers {
  Memory device, host;
  Bytes offset = 0;

  Region region() const { return device.region().slice(offset, host.region().bytes - offset); }
};

Buffers upload(FusedRanks& group, int rank, const PlainArrays& arrays, Bytes offset) {
  const Bytes bytes = arrays.bytes.size() + offset;
  Buffers buffers{group.platform().allocate(gpu(rank), bytes, Allocation::gpu),
                  group.platform().allocate(host(0), bytes, Allocation::pinned), offset};
  std::memcpy(buffers.host.region().data + offset, arrays.bytes.data(), arrays.bytes.size());
  group.stream(rank).copy(buffers.device.region().slice(0, bytes), buffers.host.region().slice(0, bytes));
  return buffers;
}

void download(FusedRanks& group, int rank, const Buffers& buffers, PlainArrays& arrays) {
  const Bytes bytes = buffers.host.region().bytes;
  group.stream(rank).copy(buffers.host.region().slice(0, bytes), buffers.device.region().slice(0, bytes));
  group.member(rank).synchronize(group.stream(rank), Deadline::in(60));
  std::memcpy(arrays.bytes.data(), buffers.host.region().data + buffers.offset, arrays.bytes.size());
}

struct Case {
  Collective operation;
  fused::Method method;
};

constexpr Case cases[] = {
    {Collective::all_reduce, fused::Method::ll},
    {Collective::all_reduce, fused::Method::one_shot},
    {Collective::all_reduce, fused::Method::two_shot},
    {Collective::reduce_scatter, fused::Method::ll},
    {Collective::reduce_scatter, fused::Method::one_shot},
    {Collective::all_gather, fused::Method::ll},
    {Collective::all_gather, fused::Method::one_shot},
    {Collective::all_to_all, fused::Method::ll},
    {Collective::all_to_all, fused::Method::one_shot},
    {Collective::broadcast, fused::Method::ll},
    {Collective::broadcast, fused::Method::one_shot},
    {Collective::broadcast, fused::Method::two_shot},
    {Collective::reduce, fused::Method::ll},
    {Collective::reduce, fused::Method::one_shot},
    {Collective::reduce, fused::Method::two_shot},
    {Collective::all_reduce, fused::Method::ll128},
    {Collective::all_reduce, fused::Method::two_shot_ll128},
    {Collective::reduce_scatter, fused::Method::ll128},
    {Collective::all_gather, fused::Method::ll128},
    {Collective::all_to_all, fused::Method::ll128},
};

// One rank's part in one operation.
struct Part {
  Schedule sizes;
  PlainArrays arrays;
  Buffers buffers;
};

Part begin(FusedRanks& group, const MadeUpCall& made_up, int rank, const Case& wanted, const EvaluationTerms& terms) {
  const CollectiveCall& call = made_up.of(rank);
  const Bytes element = bytes_of(terms.type);
  Part part;
  part.sizes = default_algorithm(call, element).make(call);
  part.arrays = made_up.arrays(part.sizes);
  part.buffers = upload(group, rank, part.arrays, terms.seed % 2 == 0 ? 0 : element);
  const Region region = part.buffers.region();
  const unsigned threads = fused::is_ll128(wanted.method) ? 32 : 8;
  group.member(rank).enqueue(call, terms.type, terms.op,
                             region.slice(part.arrays.input_at * element, part.sizes.input_count * element),
                             region.slice(part.arrays.output_at * element, part.sizes.output_count * element),
                             group.stream(rank), {wanted.method, 1 + static_cast<unsigned>(terms.seed % 3), threads});
  return part;
}

// The seed draws sizes and values; the result is compared with what the operation means.
void expect_right(FusedRanks& group, const Case& wanted, const EvaluationTerms& terms, bool in_place) {
  const MadeUpCall made_up(wanted.operation, group.ranks(), terms, in_place);
  if (group.member(0).why_unavailable(made_up.of(0), terms.type)) return;
  std::vector<Part> parts;
  for (int rank = 0; rank < group.ranks(); ++rank) parts.push_back(begin(group, made_up, rank, wanted, terms));
  std::vector<Schedule> sizes;
  std::vector<PlainArrays> arrays;
  for (Part& part : parts) {
    download(group, part.sizes.rank, part.buffers, part.arrays);
    sizes.push_back(std::move(part.sizes));
    arrays.push_back(std::move(part.arrays));
  }
  ASSERT_EQ(made_up.wrong(sizes, arrays, terms.op == ReduceOp::avg), "")
      << name(wanted.operation) << " by " << name(wanted.method) << ", " << group.ranks() << " ranks, "
      << name(terms.type) << " " << name(terms.op) << ", seed " << terms.seed;
}

TEST(FusedShape, TwoShotsByLl128FillTheGpuThatThereIs) {
  CollectiveCall call;
  call.operation = Collective::all_reduce;
  call.ranks = 4;
  const auto blocks = [&](Bytes block, int multiprocessors) {
    return fused::default_shape(call, block, fused::Method::two_shot_ll128, multiprocessors).blocks;
  };
  EXPECT_EQ(blocks(Bytes{1} << 20, 132), blocks(Bytes{1} << 20, 108)) << "both have room for all";
  EXPECT_EQ(blocks(Bytes{4} << 20, 132), 384u);
  EXPECT_EQ(blocks(Bytes{4} << 20, 66), 192u);
  EXPECT_EQ(blocks(Bytes{8} << 20, 1000), fused::most_blocks);
  EXPECT_EQ(blocks(Bytes{4} << 20, 1), 2u);
}

// Some messages are larger than the landing memory.
TEST(FusedCollective, GivesTheRightResultForAllTypesSizesAndMethods) {
  std::uint64_t number = 0;
  for (const int ranks : {2, 3, 4, 8}) {
    FusedRanks group(ranks);
    for (const Case& wanted : cases)
      for (int round = 0; round < 12; ++round, ++number) {
        const EvaluationTerms terms = terms_of(number, 3 + 7 * number, arithmetic_ops);
        if (wanted.method == fused::Method::ll && !fused::fits_into_packets(terms.type, terms.op)) continue;
        ASSERT_NO_FATAL_FAILURE(expect_right(group, wanted, terms, round % 2 == 1));
      }
  }
}

// Counts smaller than a word, different at each rank.
TEST(FusedCollective, ReducesEveryTypeByEveryMethodInEveryWay) {
  std::uint64_t seed = 1;
  for (const int ranks : {2, 5}) {
    FusedRanks group(ranks);
    for (std::uint64_t pair = 0; pair < std::uint64_t{data_types} * arithmetic_ops; ++pair)
      for (const fused::Method method : {fused::Method::ll, fused::Method::one_shot, fused::Method::two_shot,
                                         fused::Method::ll128, fused::Method::two_shot_ll128}) {
        const EvaluationTerms terms = terms_of(pair, 4 + 5 * ++seed, arithmetic_ops);
        if (method == fused::Method::ll && !fused::fits_into_packets(terms.type, terms.op)) continue;
        ASSERT_NO_FATAL_FAILURE(expect_right(group, {Collective::all_reduce, method}, terms, seed % 2 == 0));
      }
  }
}

TEST(FusedCollective, DelayedStreamsChangeNothing) {
  FusedRanks group(3, small, 2e-4);
  for (std::uint64_t round = 0; round < 8; ++round)
    ASSERT_NO_FATAL_FAILURE(
        expect_right(group, cases[round % 3], {DataType::float32, ReduceOp::sum, 4 + 10 * round, -1}, false));
}

// Bytes on the GPU of one rank.
class OnGpu {
 public:
  OnGpu(FusedRanks& group, int rank, Bytes bytes)
      : group_(group),
        rank_(rank),
        device_(group.platform().allocate(gpu(rank), bytes, Allocation::gpu)),
        host_(group.platform().allocate(host(0), bytes, Allocation::pinned)),
        bytes_(bytes) {}

  Region region() const { return device_.region().slice(0, bytes_); }
  void write(const std::vector<std::byte>& values) {
    std::memcpy(host_.region().data, values.data(), bytes_);
    group_.stream(rank_).copy(region(), host_.region().slice(0, bytes_));
    group_.stream(rank_).synchronize(Deadline::in(60));
  }
  std::vector<std::byte> read() {
    group_.stream(rank_).copy(host_.region().slice(0, bytes_), region());
    group_.member(rank_).synchronize(group_.stream(rank_), Deadline::in(60));
    return {host_.region().data, host_.region().data + bytes_};
  }

 private:
  FusedRanks& group_;
  int rank_;
  Memory device_, host_;
  Bytes bytes_;
};

std::byte* store_number(DataType type, std::byte* to, int value) {
  const auto put = [&](auto number) {
    std::memcpy(to, &number, sizeof number);
    return to + sizeof number;
  };
  if (type == DataType::float64) return put(static_cast<double>(value));
  return type == DataType::float32 ? put(static_cast<float>(value)) : put(to_bfloat16(static_cast<float>(value)));
}

// Results in outputs that the ranks have or have not exposed. Neighbours use different memories of the two.
class ExposedResults {
 public:
  static constexpr std::byte nothing{0x5b};
  static constexpr FusedOptions options{256, 8192, 480, 20};

  ExposedResults(int ranks, Bytes most) : group_(ranks, options), bytes_(most + 4096) {
    for (int rank = 0; rank < ranks; ++rank)
      for (int memory = 0; memory < 2; ++memory) memories_.push_back(std::make_unique<OnGpu>(group_, rank, bytes_));
    for (int rank = 0; rank < ranks; ++rank) apart_.push_back(std::make_unique<OnGpu>(group_, rank, bytes_));
  }

  // A memory of each rank, or none, in a slot; one rank may have nothing there.
  void expose(unsigned slot, int number, int without = -1) {
    for (int rank = 0; rank < group_.ranks(); ++rank) expose_at(rank, slot, number, without);
  }
  void expose_at(int rank, unsigned slot, int number, int without = -1) {
    std::vector<Region> all(static_cast<std::size_t>(group_.ranks()));
    for (int peer = 0; number >= 0 && peer < group_.ranks(); ++peer)
      all[static_cast<std::size_t>(peer)] =
          memory(peer, (number + peer) % 2).region().slice(0, peer == without ? 0 : bytes_);
    group_.member(rank).exposed()->expose(slot, all, group_.stream(rank));
  }

  struct Setting {
    DataType type;
    std::size_t count;
    Collective operation;
    bool in_place;
  };
  // Each rank's output in its memory with that number. The ranks that others have sent to by way of landing memory.
  std::vector<int> landed(const Setting& setting, int number) {
    ++turn_;
    const Bytes bytes = setting.count * bytes_of(setting.type);
    std::vector<std::vector<std::byte>> wanted;
    for (int rank = 0; rank < group_.ranks(); ++rank) wanted.push_back(prepare(rank, setting, number));
    for (int rank = 0; rank < group_.ranks(); ++rank) {
      CollectiveCall call;
      call.operation = setting.operation;
      call.rank = rank;
      call.ranks = group_.ranks();
      call.count = setting.count;
      call.root = root();
      const Region output = memory(rank, (number + rank) % 2).region().slice(at(rank), bytes);
      group_.member(rank).enqueue(
          call, setting.type, ReduceOp::sum, setting.in_place ? output : apart(rank).region().slice(0, bytes),
          takes(rank, setting) ? output : Region{}, group_.stream(rank), {fused::Method::two_shot, 1 + turn_ % 3, 8});
    }
    std::vector<int> ranks;
    for (int rank = 0; rank < group_.ranks(); ++rank) {
      EXPECT_EQ(memory(rank, (number + rank) % 2).read(), wanted[static_cast<std::size_t>(rank)]) << "rank " << rank;
      if (anything_landed(rank)) ranks.push_back(rank);
    }
    return ranks;
  }

 private:
  OnGpu& memory(int rank, int number) { return *memories_[static_cast<std::size_t>(2 * rank + number)]; }
  OnGpu& apart(int rank) { return *apart_[static_cast<std::size_t>(rank)]; }
  Bytes at(int rank) const { return Bytes{16} * (static_cast<Bytes>(rank * 5 + 3) + turn_ % 7); }
  int root() const { return group_.ranks() - 1; }
  bool takes(int rank, const Setting& setting) const {
    return setting.operation != Collective::reduce || rank == root();
  }
  static int value(int rank, std::size_t i) { return static_cast<int>((i * 7 + static_cast<std::size_t>(rank)) % 3); }

  // The contents of the rank's memory afterwards.
  std::vector<std::byte> prepare(int rank, const Setting& setting, int number) {
    std::vector<std::byte> input(bytes_), before(bytes_, nothing), after(bytes_, nothing);
    std::byte *mine = input.data(), *sum = after.data() + at(rank);
    for (std::size_t i = 0; i < setting.count; ++i) {
      int all = 0;
      for (int peer = 0; peer < group_.ranks(); ++peer) all += value(peer, i);
      mine = store_number(setting.type, mine, value(rank, i));
      sum = store_number(setting.type, sum, setting.operation == Collective::broadcast ? value(root(), i) : all);
    }
    if (setting.in_place) std::copy(input.data(), mine, before.data() + at(rank));
    apart(rank).write(input);
    memory(rank, (number + rank) % 2).write(before);
    for (const unsigned turn : {0u, 1u}) mark(rank, turn);
    return takes(rank, setting) ? after : before;
  }

  Region shot(int rank, unsigned turn) {
    const Region landing = group_.member(rank).landing();
    return landing.slice(landing.bytes - (turn == 0 ? 3 : 1) * options.bulk_bytes, options.bulk_bytes);
  }
  void mark(int rank, unsigned turn) {
    const Memory marks = group_.platform().allocate(host(0), options.bulk_bytes, Allocation::pinned);
    std::memset(marks.region().data, static_cast<int>(nothing), options.bulk_bytes);
    group_.stream(rank).copy(shot(rank, turn), marks.region().slice(0, options.bulk_bytes));
    group_.stream(rank).synchronize(Deadline::in(60));
  }
  bool anything_landed(int rank) {
    const Memory seen = group_.platform().allocate(host(0), options.bulk_bytes, Allocation::pinned);
    for (const unsigned turn : {0u, 1u}) {
      group_.stream(rank).copy(seen.region().slice(0, options.bulk_bytes), shot(rank, turn));
      group_.stream(rank).synchronize(Deadline::in(60));
      const std::span bytes(seen.region().data, options.bulk_bytes);
      if (std::ranges::any_of(bytes, [](std::byte each) { return each != nothing; })) return true;
    }
    return false;
  }

  FusedRanks group_;
  Bytes bytes_;
  std::vector<std::unique_ptr<OnGpu>> memories_, apart_;
  unsigned turn_ = 0;
};

std::vector<int> all_of(int ranks) {
  std::vector<int> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// Counts that need one kernel or several; they are a multiple of 16 bytes or not.
TEST(FusedCollective, ResultsGoStraightIntoOutputsThatAllHaveExposed) {
  for (int ranks = 2; ranks <= 8; ++ranks) {
    ExposedResults results(ranks, 5000 * sizeof(double));
    results.expose(2, 0);
    int turn = ranks;
    for (const DataType type : {DataType::float32, DataType::bfloat16, DataType::float64})
      for (const std::size_t count : {64, 1001, 4000, 1003}) {
        ++turn;
        constexpr Collective operations[] = {Collective::reduce, Collective::all_reduce, Collective::broadcast};
        const Collective operation = operations[turn % 3];
        const ExposedResults::Setting setting{type, count, operation, turn % 2 == 0};
        const bool whole = count * bytes_of(type) % 16 == 0;
        std::vector<int> takers = operation == Collective::reduce ? std::vector{ranks - 1} : all_of(ranks);
        if (operation == Collective::broadcast) takers.pop_back();  // the root keeps its own
        EXPECT_EQ(results.landed(setting, 0), whole ? std::vector<int>() : takers) << ranks << name(type) << count;
        EXPECT_EQ(results.landed(setting, 1), takers) << "in the memories that are not exposed";
      }
  }
}

TEST(FusedCollective, WhatSomeRanksHaveExposedComesAndGoes) {
  ExposedResults results(3, 5000 * sizeof(float));
  const ExposedResults::Setting setting{DataType::float32, 4000, Collective::all_reduce, true};
  const std::vector<int> none, all = all_of(3);
  EXPECT_EQ(results.landed(setting, 0), all);
  results.expose(block::exposed_slots, 0);
  EXPECT_EQ(results.landed(setting, 0), none);
  results.expose(1, 1);
  EXPECT_EQ(results.landed(setting, 1), none);
  results.expose_at(1, block::exposed_slots, -1);  // it neither tells nor hears of the others'
  EXPECT_EQ(results.landed(setting, 0), all);
  EXPECT_EQ(results.landed(setting, 1), none);
  results.expose_at(0, block::exposed_slots, -1);
  results.expose_at(2, block::exposed_slots, -1);
  EXPECT_EQ(results.landed(setting, 0), all);
  results.expose(block::exposed_slots, 0);
  results.expose(1, -1);
  EXPECT_EQ(results.landed(setting, 0), none);
  EXPECT_EQ(results.landed(setting, 1), all);
  results.expose(1, 1, 2);
  EXPECT_EQ(results.landed(setting, 1), std::vector<int>{2});
  EXPECT_THROW(results.expose(0, 0), Error);
  EXPECT_THROW(results.expose(block::exposed_slots + 1, 0), Error);
}

TEST(FusedCollective, ARankThatDoesNotTakePartIsNamedAndTheGpuIsGone) {
  FusedRanks group(2, {256, 8192, 480, 0.01});
  const MadeUpCall made_up(Collective::all_reduce, 2, {DataType::float32, ReduceOp::sum, 9, -1}, false);
  const Part part = begin(group, made_up, 0, cases[0], {DataType::float32, ReduceOp::sum, 9, -1});
  try {
    group.member(0).synchronize(group.stream(0), Deadline::in(20));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::timeout);
    const std::string why = error.what();
    EXPECT_EQ(why.find("rank 0: rank 1 did not send within 10.0 ms in all_reduce #1 of "), 0u) << why;
  }
  EXPECT_THROW(group.stream(0).done(), Error);
  EXPECT_THROW(group.stream(0).synchronize(Deadline::in(20)), Error);
  EXPECT_THROW(group.platform().open_stream(gpu(0))->copy(part.buffers.region(), part.buffers.region()), Error);
  EXPECT_THROW(group.platform().allocate(gpu(0), 100, Allocation::gpu), Error);
  group.stream(1).synchronize(Deadline::in(20));
}

TEST(FusedCollective, WhatItCannotDoIsRefusedWithTheReason) {
  FusedRanks group(2);
  CollectiveCall call;
  call.operation = Collective::gather;
  call.ranks = 2;
  EXPECT_EQ(group.member(0).why_unavailable(call, DataType::float32), "there is no fused kernel for gather");
  call.operation = Collective::all_gather;
  call.counts = {1, 2};
  EXPECT_EQ(group.member(0).why_unavailable(call, DataType::float32), "fused kernels are for blocks of one size");
  call.counts.clear();
  call.count = 1;
  EXPECT_THROW(group.member(0).enqueue(call, DataType::float32, ReduceOp::sum, {}, {}, group.stream(0),
                                       {fused::Method::two_shot, 1, 32}),
               Error);
  EXPECT_THROW(FusedRanks(9), Error);
  call.operation = Collective::all_reduce;
  const fused::KernelShape ll{fused::Method::ll, 1, 32};
  EXPECT_EQ(error_of([&] {
              group.member(0).enqueue(call, DataType::complex128, ReduceOp::prod, {}, {}, group.stream(0), ll);
            }),
            "there is no prod of complex128 by LL");
}

}  // namespace
}  // namespace waywiser
