#pragma once

#include <array>
#include <atomic>
#include <span>
#include <thread>
#include <vector>

#include "tests/collective/disorderly_block.hpp"
#include "waywiser/collective/fused/fused_works.hpp"
#include "waywiser/collective/fused/ll128_body.hpp"
#include "waywiser/collective/fused/ll_body.hpp"
#include "waywiser/collective/fused/push_body.hpp"
#include "waywiser/collective/on_stream/description.hpp"

namespace waywiser::fused {

constexpr unsigned blocks = 2, threads = 4;
constexpr int operations = 22;

// The ranks on plain memory; every block of every operation is one thread.
struct DisorderlyRanks {
  explicit DisorderlyRanks(unsigned ranks, std::uint64_t bulk_bytes = 4096, std::uint64_t line_pairs = 16)
      : layout{ranks, 1024, bulk_bytes, line_pairs}, states(ranks), notices(ranks), tables(ranks) {
    for (unsigned rank = 0; rank < ranks; ++rank) landings.emplace_back(layout.bytes() / sizeof(Vector16) + 1);
  }

  FusedArguments terms(unsigned rank, double deadline) {
    FusedArguments terms{{},
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
  std::vector<FusedState> states;
  std::vector<block::Notice> notices;
  std::vector<std::array<block::Exposed, std::size_t{block::exposed_slots + 1} * block::max_ranks>> tables;
  std::vector<std::vector<Vector16>> landings;
};

inline void run_block(DisorderlyBlock block, Method method, const FusedArguments& terms, const FusedWork& work) {
  if (method == Method::ll)
    LlBody<float, block::max_ranks, false, DisorderlyBlock>(block, terms, work).run();
  else if (method == Method::one_shot)
    PushBody<float, block::max_ranks, false, DisorderlyBlock>(block, terms, work).run_one_shot();
  else if (method == Method::two_shot)
    PushBody<float, block::max_ranks, false, DisorderlyBlock>(block, terms, work).run_two_shot();
  else if (method == Method::ll128)
    Ll128Body<float, block::max_ranks, 1, false, DisorderlyBlock>(block, terms, work).run_one_shot();
  else
    Ll128Body<float, block::max_ranks, 2, false, DisorderlyBlock>(block, terms, work).run_two_shot();
}

inline std::size_t count_of(int operation) { return 1 + static_cast<std::size_t>(operation * 37) % 150; }
inline Method method_of(int operation) { return static_cast<Method>(operation * 5 % 11 % 5); }
inline float value(unsigned rank, int operation, std::size_t i) {
  return static_cast<float>(100 * operation + static_cast<int>(i % 50)) + static_cast<float>(rank);
}

// False: a block has trapped.
// False if a block trapped.
inline bool run(const FusedArguments& terms, const FusedWork& work, Method method, std::uint64_t seed) {
  std::atomic<bool> trapped = false;
  {
    std::vector<std::jthread> grid;
    for (unsigned block = 0; block < blocks; ++block)
      grid.emplace_back([&, block] {
        try {
          run_block(DisorderlyBlock(block, blocks, is_ll128(method) ? 64 : threads, seed + block * 1000), method, terms,
                    work);
        } catch (const Trap&) {
          trapped = true;
        }
      });
  }
  return !trapped;
}

inline Buffers buffers_of(std::span<const float> in, std::span<float> out, const on_stream::Description& description,
                          unsigned slot = 0) {
  return {reinterpret_cast<const std::byte*>(in.data()), reinterpret_cast<std::byte*>(out.data()), out.size() * 4, slot,
          description.word()};
}

inline on_stream::Description sum_of_floats(std::size_t count) {
  return {static_cast<std::uint32_t>(Collective::all_reduce), DataType::float32, ReduceOp::sum, -1, count};
}

inline bool all_reduce(const FusedArguments& terms, const on_stream::Description& description, Method method,
                       std::uint64_t seed, std::span<const float> in, std::span<float> out, unsigned slot = 0) {
  CollectiveCall call;
  call.operation = Collective::all_reduce;
  call.ranks = static_cast<int>(terms.layout.ranks);
  const Buffers buffers = buffers_of(in, out, description, slot);
  return run(terms, works(call, DataType::float32, ReduceOp::sum, buffers, method, 1024).at(0), method, seed);
}

inline void all_reduce(const FusedArguments& terms, int operation, Method method, std::span<const float> in,
                       std::span<float> out, unsigned slot = 0) {
  const std::uint64_t seed = terms.rank * 100000 + static_cast<unsigned>(operation);
  all_reduce(terms, sum_of_floats(in.size()), method, seed, in, out, slot);
}

inline float sum_of(unsigned ranks, int operation, std::size_t i) {
  float sum = 0;
  for (unsigned rank = 0; rank < ranks; ++rank) sum += value(rank, operation, i);
  return sum;
}

}  // namespace waywiser::fused
