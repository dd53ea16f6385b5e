#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <thread>
#include <vector>

#include "tests/collective/disorderly_ranks.hpp"
#include "waywiser/collective/fused/fused_works.hpp"
#include "waywiser/collective/on_stream/description.hpp"
#include "waywiser/collective/on_stream/failure.hpp"

namespace waywiser::fused {
namespace {

// Only the root's `in` has data.
void broadcast_in_two_shots(const FusedArguments& terms, int operation, int root, std::span<const float> in,
                            std::span<float> out) {
  CollectiveCall call;
  call.operation = Collective::broadcast;
  call.ranks = static_cast<int>(terms.layout.ranks);
  call.root = root;
  const on_stream::Description description{static_cast<std::uint32_t>(Collective::broadcast), DataType::float32,
                                           ReduceOp::sum, root, out.size()};
  const Buffers buffers = buffers_of(in, out, description);
  const std::uint64_t seed = terms.rank * 100000 + static_cast<unsigned>(operation);
  run(terms, works(call, DataType::float32, ReduceOp::sum, buffers, Method::two_shot, 1024).at(0), Method::two_shot,
      seed);
}

void expect_right_results(DisorderlyRanks& group) {
  const auto ranks = static_cast<unsigned>(group.layout.ranks);
  std::vector<int> wrong(ranks, 0);
  {
    std::vector<std::jthread> all;
    for (unsigned rank = 0; rank < ranks; ++rank)
      all.emplace_back([&, rank] {
        const FusedArguments terms = group.terms(rank, 20);
        for (int operation = 0; operation < operations; ++operation) {
          std::vector<float> in(count_of(operation)), out(in.size());
          for (std::size_t i = 0; i < in.size(); ++i) in[i] = value(rank, operation, i);
          all_reduce(terms, operation, method_of(operation), in, out);
          for (std::size_t i = 0; i < in.size(); ++i) wrong[rank] += out[i] != sum_of(ranks, operation, i);
        }
      });
  }
  EXPECT_EQ(wrong, std::vector<int>(ranks, 0)) << ranks << " ranks";
  for (const FusedState& state : group.states)
    EXPECT_EQ(state.progress / most_blocks, static_cast<std::uint64_t>(operations));
  for (const block::Notice& notice : group.notices) EXPECT_FALSE(on_stream::failure_in(notice));
}

TEST(FusedOrder, ResultsAreRightWhenStoresArriveLateAndInAnyOrder) {
  for (const unsigned ranks : {2u, 3u, 4u}) {
    DisorderlyRanks group(ranks);
    expect_right_results(group);
  }
}

// Each rank is the root in turn, with its data in its output or elsewhere.
TEST(FusedOrder, BroadcastsInTwoShotsAreRightWhenStoresArriveLateAndInAnyOrder) {
  for (const unsigned ranks : {2u, 3u, 4u}) {
    DisorderlyRanks group(ranks);
    std::vector<int> wrong(ranks, 0);
    {
      std::vector<std::jthread> all;
      for (unsigned rank = 0; rank < ranks; ++rank)
        all.emplace_back([&, rank] {
          const FusedArguments terms = group.terms(rank, 20);
          for (int operation = 0; operation < operations; ++operation) {
            const auto root = static_cast<unsigned>(operation) % ranks;
            std::vector<float> out(count_of(operation), -1), apart(out.size());
            std::vector<float>& in = operation % 2 == 0 ? out : apart;
            for (std::size_t i = 0; rank == root && i < in.size(); ++i) in[i] = value(root, operation, i);
            broadcast_in_two_shots(terms, operation, static_cast<int>(root), rank == root ? in : std::span<float>(),
                                   out);
            for (std::size_t i = 0; i < out.size(); ++i) wrong[rank] += out[i] != value(root, operation, i);
          }
        });
    }
    EXPECT_EQ(wrong, std::vector<int>(ranks, 0)) << ranks << " ranks";
    for (const block::Notice& notice : group.notices) EXPECT_FALSE(on_stream::failure_in(notice));
  }
}

// Operations in one shot also use the places of the second shot.
TEST(FusedOrder, ResultsAreRightWhereTheMemoryIsOnlyJustLargeEnough) {
  for (const unsigned ranks : {2u, 3u, 4u}) {
    DisorderlyRanks group(ranks, 304 * ranks, (3 * ranks + 2) / 2);
    expect_right_results(group);
  }
}

// Each rank's outputs lie at different places, in one of two exposed memories or in neither. One rank does not reach
// the second memory of its neighbour.
class ExposedOutputs {
 public:
  static constexpr std::size_t vectors = 128;  // of a memory
  static constexpr float untouched = -77;

  explicit ExposedOutputs(DisorderlyRanks& group) : group_(group) {
    for (unsigned rank = 0; rank < group.layout.ranks; ++rank) {
      memories_.emplace_back(3 * vectors * 4);
      for (unsigned slot = 1; slot < 3; ++slot)
        for (unsigned peer = 0; peer < group.layout.ranks; ++peer)
          if (reaches(peer, rank, slot))
            group.tables[peer][slot * block::max_ranks + rank] = {
                reinterpret_cast<std::byte*>(memories_[rank].data() + slot * vectors * 4), vectors * 16};
    }
  }

  bool right(unsigned rank, int operation) {
    const unsigned ranks = group_.layout.ranks, slot = (rank + static_cast<unsigned>(operation)) % 3;
    const std::size_t count = operation % 4 == 3 ? count_of(operation) : (count_of(operation) + 3) / 4 * 4;
    const std::size_t at = slot * vectors * 4 + std::size_t{rank * 7 + static_cast<unsigned>(operation) * 3} % 80 * 4;
    const Method method = operation % 5 == 4 ? Method::one_shot : Method::two_shot;
    std::vector<float>& memory = memories_[rank];
    std::ranges::fill(memory, untouched);
    const std::span out = std::span(memory).subspan(at, count);
    std::vector<float> apart(count);
    const std::span in = operation % 2 == 0 ? out : std::span(apart);
    for (std::size_t i = 0; i < count; ++i) in[i] = value(rank, operation, i);
    const std::span<float> landed = landing(rank, operation);
    std::ranges::fill(landed, untouched);
    all_reduce(group_.terms(rank, 20), operation, method, in, out, slot);
    for (std::size_t i = 0; i < memory.size(); ++i)
      if (memory[i] != (i < at || i >= at + count ? untouched : sum_of(ranks, operation, i - at))) return false;
    for (unsigned peer = 0; peer < ranks; ++peer) {
      const std::size_t part = ((count + 3) / 4 + ranks - 1) / ranks * 4;
      if (peer == rank || peer * part >= count) continue;
      const bool lands = method == Method::two_shot && (slot == 0 || count % 4 != 0 || !reaches(peer, rank, slot));
      if ((landed[peer * part] != untouched) != lands) return false;
    }
    return true;
  }

 private:
  bool reaches(unsigned peer, unsigned rank, unsigned slot) const {
    return slot == 1 || peer != 0 || rank != 1 % group_.layout.ranks;
  }
  // The data that the others put there in the second shot.
  std::span<float> landing(unsigned rank, int operation) {
    const auto turn = static_cast<unsigned>(operation + 1) % 2;
    auto* begin = reinterpret_cast<std::byte*>(group_.landings[rank].data()) + group_.layout.bulk(turn, 1);
    return {reinterpret_cast<float*>(begin), group_.layout.bulk_bytes / 4};
  }

  DisorderlyRanks& group_;
  std::vector<std::vector<float>> memories_;
};

TEST(FusedOrder, ExposedOutputsGetTheirSumsAndNothingElse) {
  for (const unsigned ranks : {2u, 3u, 4u}) {
    DisorderlyRanks group(ranks);
    ExposedOutputs outputs(group);
    std::vector<std::vector<int>> wrong(ranks);
    {
      std::vector<std::jthread> all;
      for (unsigned rank = 0; rank < ranks; ++rank)
        all.emplace_back([&, rank] {
          for (int operation = 0; operation < 30; ++operation)
            if (!outputs.right(rank, operation)) wrong[rank].push_back(operation);
        });
    }
    EXPECT_EQ(wrong, std::vector<std::vector<int>>(ranks)) << ranks << " ranks";
  }
}

TEST(FusedOrder, APlaceIsInABoundedSlotAndOffset) {
  const block::OutputPlace place =
      block::OutputPlace::of(block::OutputPlace{block::exposed_slots, (std::uint64_t{1} << 32) - 16}.word());
  EXPECT_EQ(place.slot, block::exposed_slots);
  EXPECT_EQ(place.offset, (std::uint64_t{1} << 32) - 16);
  for (const block::OutputPlace none : {block::OutputPlace{0, 16}, block::OutputPlace{block::exposed_slots + 1, 16},
                                        block::OutputPlace{1, 24}, block::OutputPlace{1, std::uint64_t{1} << 32}})
    EXPECT_EQ(none.word(), 0u);
  EXPECT_LE(block::OutputPlace::of(~0u).slot, block::exposed_slots);
  Vector16 memory[2];
  const block::Exposed exposed{reinterpret_cast<std::byte*>(memory), sizeof memory};
  EXPECT_TRUE(exposed.holds(16, 16));
  EXPECT_FALSE(exposed.holds(16, 17));
  EXPECT_FALSE(exposed.holds(48, 0));
  EXPECT_FALSE(exposed.holds(~std::uint64_t{15}, 32));
  EXPECT_FALSE((block::Exposed{nullptr, 64}.holds(0, 16)));
}

}  // namespace
}  // namespace waywiser::fused
