#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "tests/collective/disorderly_block.hpp"
#include "waywiser/collective/fused/host_block.hpp"
#include "waywiser/collective/fused/packets_body.hpp"
#include "waywiser/collective/fused/push_body.hpp"
#include "waywiser/collective/fused/works.hpp"

namespace waywiser::fused {
namespace {

constexpr unsigned blocks = 2, threads = 4;
constexpr int operations = 14;

// The ranks as threads on plain memory; every block of every operation is a thread of its own.
struct Ranks {
  explicit Ranks(unsigned ranks) : layout{ranks, 1024, 4096}, states(ranks), notices(ranks) {
    for (unsigned rank = 0; rank < ranks; ++rank) landings.emplace_back(layout.bytes() / sizeof(Vector16) + 1);
  }

  Terms terms(unsigned rank, double deadline) {
    Terms terms{{},
                &states[rank],
                &notices[rank],
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
  std::vector<std::vector<Vector16>> landings;
};

void run_block(DisorderlyBlock block, Method method, const Terms& terms, const Work& work) {
  if (method == Method::packets)
    PacketsBody<float, most_ranks, false, DisorderlyBlock>(block, terms, work).run();
  else if (method == Method::one_shot)
    PushBody<float, most_ranks, false, DisorderlyBlock>(block, terms, work).run_one_shot();
  else
    PushBody<float, most_ranks, false, DisorderlyBlock>(block, terms, work).run_two_shot();
}

std::size_t count_of(int operation) { return 1 + static_cast<std::size_t>(operation * 37) % 150; }
Method method_of(int operation) { return static_cast<Method>(operation * 5 % 7 % 3); }
float value(unsigned rank, int operation, std::size_t i) {
  return static_cast<float>(100 * operation + static_cast<int>(i % 50)) + static_cast<float>(rank);
}

void all_reduce(const Terms& terms, int operation, const std::vector<float>& in, std::vector<float>& out) {
  CollectiveCall call;
  call.operation = Collective::all_reduce;
  call.ranks = static_cast<int>(terms.layout.ranks);
  const Buffers buffers{reinterpret_cast<const std::byte*>(in.data()), reinterpret_cast<std::byte*>(out.data()),
                        in.size() * 4};
  const Work work = works(call, ReduceOp::sum, buffers, method_of(operation), 1024).at(0);
  std::vector<std::jthread> grid;
  for (unsigned block = 0; block < blocks; ++block)
    grid.emplace_back([&, block] {
      const std::uint64_t seed = (terms.rank * 100 + block) * 1000 + static_cast<unsigned>(operation);
      run_block(DisorderlyBlock(block, blocks, threads, seed), method_of(operation), terms, work);
    });
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
            all_reduce(terms, operation, in, out);
            for (std::size_t i = 0; i < in.size(); ++i) {
              float sum = 0;
              for (unsigned peer = 0; peer < ranks; ++peer) sum += value(peer, operation, i);
              wrong[rank] += out[i] != sum;
            }
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

TEST(FusedOrder, AMissingRankIsNamedAndLaterOperationsDoNotWait) {
  for (const int operation : {0, 1, 3}) {  // a method each
    Ranks group(3);
    const Terms terms = group.terms(0, 1e-3);
    const std::vector<float> in(20, 1);
    std::vector<float> out(20, 7);
    for (int again = 0; again < 100; ++again) all_reduce(terms, operation, in, out);
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
