#include <gtest/gtest.h>

#include <cstring>

#include "tests/base/error_of.hpp"
#include "tests/collective/fused_ranks.hpp"
#include "tests/collective/made_up_call.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/collective/default_choice.hpp"
#include "waywiser/collective/fused/fused_collective.hpp"
#include "waywiser/collective/fused/fused_works.hpp"

namespace waywiser {
namespace {

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
