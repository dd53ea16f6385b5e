#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>

#include "tests/collective/made_up_call.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/collective/default_choice.hpp"
#include "waywiser/collective/fused/fused_collective.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"

namespace waywiser {
namespace {

constexpr FusedOptions small{256, 8192, 20};

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
      members_.push_back(std::make_unique<FusedCollective>(*platform_, stream(rank), rank, ranks, options));
      for (int peer = 0; peer < ranks; ++peer)
        if (peer != rank) platform_->set_peer_access(rank, peer, true);
    }
    std::vector<Region> landings;
    for (const auto& member : members_) landings.push_back(member->landing().region());
    for (const auto& member : members_) member->connect(landings);
  }

  int ranks() const { return static_cast<int>(members_.size()); }
  Stream& stream(int rank) { return *streams_[static_cast<std::size_t>(rank)]; }
  FusedCollective& member(int rank) { return *members_[static_cast<std::size_t>(rank)]; }
  Platform& platform() { return *platform_; }

 private:
  std::unique_ptr<Platform> platform_;
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
    {Collective::all_reduce, fused::Method::packets},      {Collective::all_reduce, fused::Method::one_shot},
    {Collective::all_reduce, fused::Method::two_shot},     {Collective::reduce_scatter, fused::Method::packets},
    {Collective::reduce_scatter, fused::Method::one_shot}, {Collective::all_gather, fused::Method::packets},
    {Collective::all_gather, fused::Method::one_shot},     {Collective::all_to_all, fused::Method::packets},
    {Collective::all_to_all, fused::Method::one_shot},     {Collective::broadcast, fused::Method::packets},
    {Collective::broadcast, fused::Method::one_shot},      {Collective::reduce, fused::Method::packets},
    {Collective::reduce, fused::Method::one_shot},         {Collective::reduce, fused::Method::two_shot},
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
  group.member(rank).enqueue(call, terms.type, terms.op,
                             region.slice(part.arrays.input_at * element, part.sizes.input_count * element),
                             region.slice(part.arrays.output_at * element, part.sizes.output_count * element),
                             group.stream(rank), {wanted.method, 1 + static_cast<unsigned>(terms.seed % 3), 8});
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

// Larger messages than fit into the landing memory at once are among them.
TEST(FusedCollective, GivesTheRightResultForAllTypesSizesAndMethods) {
  std::uint64_t number = 0;
  for (const int ranks : {2, 3, 4, 8}) {
    FusedRanks group(ranks);
    for (const Case& wanted : cases)
      for (int round = 0; round < 12; ++round, ++number) {
        const EvaluationTerms terms{static_cast<DataType>(number % data_types),
                                    static_cast<ReduceOp>(number / data_types % reduce_ops), 3 + 7 * number, -1};
        ASSERT_NO_FATAL_FAILURE(expect_right(group, wanted, terms, round % 2 == 1));
      }
  }
}

TEST(FusedCollective, DelayedStreamsChangeNothing) {
  FusedRanks group(3, small, 2e-4);
  for (std::uint64_t round = 0; round < 8; ++round)
    ASSERT_NO_FATAL_FAILURE(
        expect_right(group, cases[round % 3], {DataType::float32, ReduceOp::sum, 4 + 10 * round, -1}, false));
}

TEST(FusedCollective, ARankThatDoesNotTakePartIsNamed) {
  FusedRanks group(2, {256, 8192, 0.01});
  const MadeUpCall made_up(Collective::all_reduce, 2, {DataType::float32, ReduceOp::sum, 9, -1}, false);
  const Part part = begin(group, made_up, 0, cases[0], {DataType::float32, ReduceOp::sum, 9, -1});
  try {
    group.member(0).synchronize(group.stream(0), Deadline::in(20));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::timeout);
    EXPECT_STREQ(error.what(), "rank 0: rank 1 did not send within 10.0 ms in fused collective 1");
  }
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
}

}  // namespace
}  // namespace waywiser
