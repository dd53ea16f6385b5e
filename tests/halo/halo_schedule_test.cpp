#include "waywiser/halo/halo_schedule.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/base/error_of.hpp"
#include "tests/base/random_cases.hpp"
#include "tests/collective/evaluator.hpp"
#include "tests/halo/made_up_domain.hpp"
#include "waywiser/comm/schedule_check.hpp"

namespace waywiser {
namespace {

// Of one variant, or mixed by chance.
std::vector<Schedule> schedules_of(const MadeUpDomain& domain, HaloVariant variant, std::uint64_t seed) {
  std::vector<Schedule> all;
  for (const HaloPartition& each : domain.partitions) {
    check_partition(each);
    all.push_back(
        halo_schedule(variant, with_variants(boundary_of(each, domain.fields), made_up_mix(each, seed, mixable))));
  }
  return all;
}

// Runs the schedules on plain arrays. Returns the first difference from the whole domain.
std::string difference(const MadeUpDomain& domain, HaloVariant variant, std::uint64_t seed) {
  const std::vector<Schedule> schedules = schedules_of(domain, variant, seed);
  std::vector<PlainArrays> arrays;
  for (const Schedule& each : schedules) {
    if (const auto why = why_invalid(each)) return *why;
    PlainArrays& plain = arrays.emplace_back();
    for (std::size_t i = 0; i < each.arrays.size(); ++i)
      plain.arrays.push_back(i < domain.fields.size() ? domain.before(each.rank, i, 0)
                                                      : std::vector<std::byte>(each.arrays[i].count, std::byte{0x55}));
  }
  if (const auto why = why_unlike(schedules)) return *why;
  const Evaluation done = evaluate(schedules, arrays, {DataType::uint8, ReduceOp::sum, seed, -1});
  if (!done.wrong.empty()) return done.wrong;
  for (const Schedule& each : schedules)
    for (std::size_t field = 0; field < domain.fields.size(); ++field)
      if (arrays[static_cast<std::size_t>(each.rank)].arrays[field] != domain.after(each.rank, field, 0))
        return "field " + std::to_string(field) + " of rank " + std::to_string(each.rank);
  return {};
}

// With empty boxes, boxes of one cell, ranks that are their own neighbours, ghosts wider than boxes.
TEST(HaloSchedule, GhostsOfGridsAreThoseOfTheWholeDomain) {
  for (std::uint64_t seed = 0; seed < random_cases(500); ++seed) {
    const MadeUpDomain domain = MadeUpDomain::of_grid(1 + static_cast<int>(seed % 8), seed);
    for (const HaloVariant variant : halo_variants)
      ASSERT_EQ(difference(domain, variant, seed), "") << name(variant) << ", seed " << seed;
    ASSERT_EQ(difference(domain, HaloVariant::mixed, seed), "") << "mixed, seed " << seed;
  }
}

TEST(HaloSchedule, GhostsOfMeshesAreThoseOfTheWholeDomain) {
  for (std::uint64_t seed = 0; seed < random_cases(500); ++seed) {
    const MadeUpDomain domain = MadeUpDomain::of_lists(1 + static_cast<int>(seed % 8), seed);
    for (const HaloVariant variant : halo_variants)
      ASSERT_EQ(difference(domain, variant, seed), "") << name(variant) << ", seed " << seed;
    ASSERT_EQ(difference(domain, HaloVariant::mixed, seed), "") << "mixed, seed " << seed;
  }
}

TEST(HaloSchedule, EachRankOfAPeriodicCubeHas26Neighbours) {
  const int parts[] = {3, 3, 3};
  const HaloGrid grid = even_grid({7, 6, 5}, {1, 1, 1}, {true, true, true}, parts);
  const MadeUpDomain domain = MadeUpDomain::of(grid, 3);
  for (const HaloPartition& each : domain.partitions) {
    std::vector<int> peers;
    for (const HaloSide& side : each.takes) peers.push_back(side.peer);
    std::ranges::sort(peers);
    EXPECT_EQ(peers.size(), 26u);
    EXPECT_EQ(std::ranges::adjacent_find(peers), peers.end());
  }
  for (const HaloVariant variant : halo_variants) EXPECT_EQ(difference(domain, variant, 1), "") << name(variant);
}

// N ranks that are all neighbours, M fields of 8 bytes.
TEST(HaloSchedule, MessagesAndCopiesAreThoseOfTheFormulas) {
  constexpr std::uint64_t ranks = 4, fields = 3, cells = 40, each = 5;  // `each`: cells given to each neighbour
  std::vector<std::vector<std::int64_t>> give(ranks), take(ranks);
  std::vector<HaloLists> lists;
  for (std::uint64_t peer = 1; peer < ranks; ++peer) {
    for (std::uint64_t i = 0; i < each; ++i) {
      give[peer].push_back(static_cast<std::int64_t>(2 * i + peer));
      take[peer].push_back(static_cast<std::int64_t>(cells - peer * each + i));
    }
    lists.push_back({static_cast<int>(peer), give[peer], take[peer]});
  }
  const HaloPartition partition = listed_partition(0, ranks, cells, lists);
  const std::vector<HaloField> doubles(fields, HaloField{});
  const HaloBoundary boundary = boundary_of(partition, doubles);
  const std::uint64_t whole = 8 * cells, boundary_bytes = 8 * each * (ranks - 1);  // S1, S2

  const ScheduleCounts wholes(halo_schedule(HaloVariant::whole_field, boundary));
  EXPECT_EQ(wholes.local_copies, fields * 2);
  EXPECT_EQ(wholes.local_bytes, fields * 2 * whole);
  EXPECT_EQ(wholes.messages, fields * (ranks - 1));
  const ScheduleCounts apart(halo_schedule(HaloVariant::per_neighbor, boundary));
  EXPECT_EQ(apart.messages, fields * (ranks - 1));
  EXPECT_EQ(apart.message_bytes, fields * boundary_bytes);
  EXPECT_EQ(apart.local_copies, 0u);
  const ScheduleCounts packed(halo_schedule(HaloVariant::packed, boundary));
  EXPECT_EQ(packed.messages, ranks - 1);
  EXPECT_EQ(packed.message_bytes, fields * boundary_bytes);
  EXPECT_EQ(packed.local_copies, fields * (ranks - 1) * 2);
  EXPECT_EQ(packed.local_bytes, fields * 2 * boundary_bytes);
  const ScheduleCounts staged(staged_schedule(HaloVariant::packed, boundary));
  EXPECT_EQ(staged.messages, ranks - 1);
  EXPECT_EQ(staged.local_copies, 0u);
}

// One neighbour's sides in one message, the other's apart; two fields.
TEST(HaloSchedule, EachSideOfAMixTravelsByItsVariant) {
  const std::vector<std::int64_t> gives = {0, 1, 2}, takes = {4, 5, 6};
  const HaloLists lists[] = {{1, std::span(gives).first(1), std::span(takes).first(1)},
                             {2, std::span(gives).last(2), std::span(takes).last(2)}};
  const HaloPartition partition = listed_partition(0, 3, 8, lists);
  const std::vector<HaloField> fields(2, HaloField{});
  const HaloMix mix{{HaloVariant::packed, HaloVariant::per_neighbor}, {HaloVariant::packed, HaloVariant::per_neighbor}};
  const HaloBoundary boundary = with_variants(boundary_of(partition, fields), mix);
  for (const Schedule& made :
       {halo_schedule(HaloVariant::mixed, boundary), staged_schedule(HaloVariant::mixed, boundary)}) {
    const MessageSummary first = sent_to(made, 1, DataType::uint8), second = sent_to(made, 2, DataType::uint8);
    EXPECT_EQ(first.messages, 1u);
    EXPECT_EQ(first.bytes, 16u);
    EXPECT_EQ(second.messages, 2u);
    EXPECT_EQ(second.bytes, 32u);
  }
  EXPECT_EQ(ScheduleCounts(halo_schedule(HaloVariant::mixed, boundary)).local_copies, 4u);
  const PackedBoundary places(boundary, true);
  EXPECT_EQ(places.give_packed, 16u);
  EXPECT_EQ(places.give_bytes, 48u);
  EXPECT_EQ(PackedBoundary(boundary, false).give_bytes, 16u);
  EXPECT_TRUE(parts_of_kernels(boundary, true).gives.empty());
  EXPECT_EQ(parts_of_kernels(boundary, false).gives.size(), 4u);
}

TEST(HaloSchedule, PackedElementsAreAligned) {
  const MadeUpDomain domain = MadeUpDomain::of_grid(4, 8);
  const std::vector<HaloField> fields = {{DataType::int8, 3, false},
                                         {DataType::float64, 1, false},
                                         {DataType::int16, 1, false},
                                         {DataType::float32, 2, true}};
  const HaloBoundary boundary = boundary_of(domain.partitions[0], fields);
  ASSERT_FALSE(boundary.gives.empty());
  std::size_t at = 0;
  int peer = -1;
  for (const BoundaryPart& each : boundary.gives) {
    if (std::exchange(peer, each.peer) != each.peer) at = 0;
    EXPECT_EQ(at % bytes_of(fields[each.field].type), 0u);
    at += each.part.count;
  }
}

// In four dimensions a face of single cells has three strided dimensions, and the components are one more.
TEST(HaloSchedule, WhatARankGivesItselfIsNoLongList) {
  const int parts[] = {2, 1, 1, 1};
  const HaloGrid grid = even_grid({8, 3, 4, 5}, {1, 1, 1, 1}, {true, true, true, true}, parts);
  const HaloPartition partition = grid_partition(grid, 1);
  const HaloField planar[] = {{DataType::float32, 24, true}}, together[] = {{DataType::float32, 24, false}};
  const auto own_bytes = [](const HaloBoundary& boundary, const std::vector<BoundaryPart>& all) {
    std::size_t bytes = 0;
    for (const BoundaryPart& each : all)
      if (each.peer == boundary.rank) bytes += each.part.count;
    return bytes;
  };
  const HaloBoundary boundary = boundary_of(partition, planar), same = boundary_of(partition, together);
  std::size_t divided = 0;
  for (const auto* all : {&boundary.gives, &boundary.takes})
    for (const BoundaryPart& each : *all) {
      if (each.peer != boundary.rank) continue;
      EXPECT_TRUE(each.part.layout.indices.empty()) << each.part.layout.indices.size();
      divided += each.part.layout.box[0].count > 1 && each.part.offset >= partition.cells * 4;
    }
  EXPECT_GT(divided, 40u);
  EXPECT_EQ(own_bytes(boundary, boundary.gives), own_bytes(same, same.gives));
  EXPECT_EQ(own_bytes(boundary, boundary.takes), own_bytes(same, same.takes));
}

TEST(HaloSchedule, VariantsHaveNames) {
  for (const HaloVariant each : halo_variants) EXPECT_EQ(parse_halo_variant(name(each)), each);
  EXPECT_EQ(error_of([] { parse_halo_variant("best"); }),
            "best: is no variant of a halo exchange: whole_field, per_neighbor, packed, direct, strided, "
            "gpu_aware");
}

}  // namespace
}  // namespace waywiser
