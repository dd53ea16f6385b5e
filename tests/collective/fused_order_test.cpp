#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <span>
#include <thread>
#include <vector>

#include "tests/collective/disorderly_block.hpp"
#include "waywiser/collective/fused/host_block.hpp"
#include "waywiser/collective/fused/lines_body.hpp"
#include "waywiser/collective/fused/packets_body.hpp"
#include "waywiser/collective/fused/push_body.hpp"
#include "waywiser/collective/fused/works.hpp"

namespace waywiser::fused {
namespace {

constexpr unsigned blocks = 2, threads = 4;
constexpr int operations = 22;

// The ranks as threads on plain memory; every block of every operation is a thread of its own.
struct Ranks {
  explicit Ranks(unsigned ranks) : layout{ranks, 1024, 4096, 16}, states(ranks), notices(ranks), tables(ranks) {
    for (unsigned rank = 0; rank < ranks; ++rank) landings.emplace_back(layout.bytes() / sizeof(Vector16) + 1);
  }

  Terms terms(unsigned rank, double deadline) {
    Terms terms{{},
                &states[rank],
                &notices[rank],
                tables[rank].data(),
                layout,
                rank,
                static_cast<std::uint64_t>(deadline * 1e9),
                most_blocks / blocks,
                most_blocks % blocks};
    for (unsigned peer = 0; peer < layout.ranks; ++peer)
      terms.landing[peer] = reinterpret_cast<std::byte*>(landings[peer].data());
    return terms;
  }

  LandingLayout layout;
  std::vector<State> states;
  std::vector<Notice> notices;
  std::vector<std::array<Exposed, std::size_t{exposed_slots + 1} * most_ranks>> tables;
  std::vector<std::vector<Vector16>> landings;
};

void run_block(DisorderlyBlock block, Method method, const Terms& terms, const Work& work) {
  if (method == Method::packets)
    PacketsBody<float, most_ranks, false, DisorderlyBlock>(block, terms, work).run();
  else if (method == Method::one_shot)
    PushBody<float, most_ranks, false, DisorderlyBlock>(block, terms, work).run_one_shot();
  else if (method == Method::two_shot)
    PushBody<float, most_ranks, false, DisorderlyBlock>(block, terms, work).run_two_shot();
  else if (method == Method::lines)
    LinesBody<float, most_ranks, 1, false, DisorderlyBlock>(block, terms, work).run_one_shot();
  else
    LinesBody<float, most_ranks, 2, false, DisorderlyBlock>(block, terms, work).run_two_shot();
}

std::size_t count_of(int operation) { return 1 + static_cast<std::size_t>(operation * 37) % 150; }
Method method_of(int operation) { return static_cast<Method>(operation * 5 % 11 % 5); }
float value(unsigned rank, int operation, std::size_t i) {
  return static_cast<float>(100 * operation + static_cast<int>(i % 50)) + static_cast<float>(rank);
}

void all_reduce(const Terms& terms, int operation, Method method, std::span<const float> in, std::span<float> out,
                unsigned slot = 0) {
  CollectiveCall call;
  call.operation = Collective::all_reduce;
  call.ranks = static_cast<int>(terms.layout.ranks);
  const Buffers buffers{reinterpret_cast<const std::byte*>(in.data()), reinterpret_cast<std::byte*>(out.data()),
                        in.size() * 4, slot};
  const Work work = works(call, ReduceOp::sum, buffers, method, 1024).at(0);
  std::vector<std::jthread> grid;
  for (unsigned block = 0; block < blocks; ++block)
    grid.emplace_back([&, block] {
      const std::uint64_t seed = (terms.rank * 100 + block) * 1000 + static_cast<unsigned>(operation);
      run_block(DisorderlyBlock(block, blocks, is_lines(method) ? 64 : threads, seed), method, terms, work);
    });
}

float sum_of(unsigned ranks, int operation, std::size_t i) {
  float sum = 0;
  for (unsigned rank = 0; rank < ranks; ++rank) sum += value(rank, operation, i);
  return sum;
}

TEST(FusedOrder, ResultsAreRightWhenStoresArriveLateAndInAnyOrder) {
  for (const unsigned ranks : {2u, 3u, 4u}) {
    Ranks group(ranks);
    std::vector<int> wrong(ranks, 0);
    {
      std::vector<std::jthread> all;
      for (unsigned rank = 0; rank < ranks; ++rank)
        all.emplace_back([&, rank] {
          const Terms terms = group.terms(rank, 20);
          for (int operation = 0; operation < operations; ++operation) {
            std::vector<float> in(count_of(operation)), out(in.size());
            for (std::size_t i = 0; i < in.size(); ++i) in[i] = value(rank, operation, i);
            all_reduce(terms, operation, method_of(operation), in, out);
            for (std::size_t i = 0; i < in.size(); ++i) wrong[rank] += out[i] != sum_of(ranks, operation, i);
          }
        });
    }
    EXPECT_EQ(wrong, std::vector<int>(ranks, 0)) << ranks << " ranks";
    for (const State& state : group.states) {
      EXPECT_EQ(state.progress / most_blocks, static_cast<std::uint64_t>(operations));
      EXPECT_EQ(state.failed_peer, 0u);
    }
  }
}

// Outputs at places of each rank's own, in two memories that it has exposed or in none. One rank does not reach what
// its neighbour has in the second.
class ExposedOutputs {
 public:
  static constexpr std::size_t vectors = 128;  // of a memory
  static constexpr float untouched = -77;

  explicit ExposedOutputs(Ranks& group) : group_(group) {
    for (unsigned rank = 0; rank < group.layout.ranks; ++rank) {
      memories_.emplace_back(3 * vectors * 4);
      for (unsigned slot = 1; slot < 3; ++slot)
        for (unsigned peer = 0; peer < group.layout.ranks; ++peer)
          if (reaches(peer, rank, slot))
            group.tables[peer][slot * most_ranks + rank] = {
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
  // What the others put there in the second shot.
  std::span<float> landing(unsigned rank, int operation) {
    const auto turn = static_cast<unsigned>(operation + 1) % 2;
    auto* begin = reinterpret_cast<std::byte*>(group_.landings[rank].data()) + group_.layout.bulk(turn, 1);
    return {reinterpret_cast<float*>(begin), group_.layout.bulk_bytes / 4};
  }

  Ranks& group_;
  std::vector<std::vector<float>> memories_;
};

TEST(FusedOrder, ExposedOutputsGetTheirSumsAndNothingElse) {
  for (const unsigned ranks : {2u, 3u, 4u}) {
    Ranks group(ranks);
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
  const OutputPlace place = OutputPlace::of(OutputPlace{exposed_slots, (std::uint64_t{1} << 32) - 16}.word());
  EXPECT_EQ(place.slot, exposed_slots);
  EXPECT_EQ(place.offset, (std::uint64_t{1} << 32) - 16);
  for (const OutputPlace none : {OutputPlace{0, 16}, OutputPlace{exposed_slots + 1, 16}, OutputPlace{1, 24},
                                 OutputPlace{1, std::uint64_t{1} << 32}})
    EXPECT_EQ(none.word(), 0u);
  EXPECT_LE(OutputPlace::of(~0u).slot, exposed_slots);
  Vector16 memory[2];
  const Exposed exposed{reinterpret_cast<std::byte*>(memory), sizeof memory};
  EXPECT_TRUE(exposed.holds(16, 16));
  EXPECT_FALSE(exposed.holds(16, 17));
  EXPECT_FALSE(exposed.holds(48, 0));
  EXPECT_FALSE(exposed.holds(~std::uint64_t{15}, 32));
  EXPECT_FALSE((Exposed{nullptr, 64}.holds(0, 16)));
}

TEST(FusedOrder, AMissingRankIsNamedAndLaterOperationsDoNotWait) {
  for (const int operation : {0, 3, 5, 7, 9}) {  // a method each
    Ranks group(3);
    const Terms terms = group.terms(0, 1e-3);
    const std::vector<float> in(20, 1);
    std::vector<float> out(20, 7);
    for (int again = 0; again < 100; ++again) all_reduce(terms, operation, method_of(operation), in, out);
    EXPECT_NE(group.states[0].failed_peer, 0u);
    EXPECT_EQ(group.states[0].failed_number, 1u);
    EXPECT_EQ(group.states[0].progress / most_blocks, 100u);
  }
}

// Counts how often host memory is looked at, which GPUs do one after the other.
struct CountingBlock : HostBlock {
  explicit CountingBlock(const Notice& watched) : HostBlock(0, 1, 1), stop(&watched.stop) {}
  std::uint32_t acquire(const std::uint32_t* flag) {
    asked += flag == stop ? 1 : 0;
    return HostBlock::acquire(flag);
  }
  const std::uint32_t* stop;
  int asked = 0;
};

TEST(FusedOrder, WhoWaitsLooksAtHostMemoryRarelyButDoes) {
  Ranks group(2);
  const Terms terms = group.terms(0, 20);
  CountingBlock block(group.notices[0]);
  OperationBody<CountingBlock> operation(block, terms);
  constexpr int looks = 6400;
  int look = 0;
  EXPECT_TRUE(operation.wait([&] { return ++look < looks ? 2u : 0u; }));
  EXPECT_EQ(block.asked, (looks - 1) / static_cast<int>(looks_at_host));
  group.notices[0].stop = 1;
  EXPECT_FALSE(operation.wait([&] { return 2u; }));
  EXPECT_EQ(group.notices[0].failed_peer, 2u);
}

}  // namespace
}  // namespace waywiser::fused
