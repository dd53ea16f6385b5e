// Litmus tests of the memory model of docs/one-sided.md: two ranks run the device functions as they are, on blocks
// whose stores are late and whose loads are old. What the model forbids never happens; without any one of the orders
// (fence, quiet, release, acquire) that a test has, it does.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "tests/base/random_cases.hpp"
#include "tests/heap/litmus_bodies.hpp"
#include "tests/heap/weak_block.hpp"
#include "waywiser/heap/device/lines.hpp"

namespace waywiser::one_sided {
namespace {

using Ranks = OneSided<WeakBlock>;
using Seen = LitmusSeen;

struct Litmus {
  std::array<std::function<void(const Ranks&, Seen&)>, 2> bodies;
  std::function<bool(const Seen&)> forbidden;
  std::array<int, 2> orders{};  // of each rank
};

constexpr std::size_t words_of_rank = 128, x_at = 0, y_at = 8;  // the counters of a team among them
static_assert(64 + sizeof(TeamCounters) <= 768);
constexpr std::uint64_t new_value = 1, lines_at = 768;
alignas(16) constexpr std::array<std::uint64_t, 30> line_values = {1, 2, 3, 4, 5, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7,
                                                                   7, 7, 7, 7, 7, 7, 7, 7, 3, 4, 5, 6, 7, 8, 9};

LitmusWords words(const Ranks& ranks) { return {ranks.at<std::uint64_t>(x_at), ranks.at<std::uint64_t>(y_at), 1}; }
void test_one(const Ranks& ranks, Seen& seen) { test_and_read(ranks, words(ranks), seen); }
bool both_are(const Seen& seen, std::uint64_t value) { return seen.values[0] == value && seen.values[1] == value; }
bool came_without_data(const Seen& seen) { return seen.values[0] == 1 && seen.values[1] != 1; }
void store(const Ranks& ranks, Seen& seen) { store_and_load(ranks, words(ranks), seen.values[ranks.rank()]); }
void load(const Ranks& ranks, Seen& seen) { load_and_store(ranks, words(ranks), seen.values[ranks.rank()]); }

const std::map<std::string, Litmus> litmus_tests = {
    {"message_passing",
     {{[](const Ranks& ranks, Seen&) { pass_message(ranks, words(ranks)); }, test_one}, came_without_data, {1, 1}}},
    {"signal_after_put",
     {{[](const Ranks& ranks, Seen&) { put_and_signal(ranks, words(ranks), SignalOp::set); }, test_one},
      came_without_data,
      {1, 1}}},
    {"added_signal_after_put",
     {{[](const Ranks& ranks, Seen&) { put_and_signal(ranks, words(ranks), SignalOp::add); }, test_one},
      came_without_data,
      {1, 1}}},
    {"store_buffering", {{store, store}, [](const Seen& seen) { return both_are(seen, 0); }, {1, 1}}},
    {"load_buffering", {{load, load}, [](const Seen& seen) { return both_are(seen, 1); }, {1, 1}}},
    {"put_put",
     {{[](const Ranks& ranks, Seen&) { put_twice(ranks, words(ranks)); },
       [](const Ranks& ranks, Seen& seen) { read_twice(ranks, words(ranks), seen); }},
      came_without_data,
      {1, 1}}},
    {"packets",
     {{[](const Ranks& ranks, Seen&) {
         const std::uint64_t value = (std::uint64_t{42} << 32) + 42;
         put_packets(ranks, ranks.at<block::LlPacket>(16), &value, 1, 1, 1);
       },
       [](const Ranks& ranks, Seen& seen) {
         std::uint64_t value = 0;
         wait_packets(ranks, &value, ranks.at<block::LlPacket>(16), 1, 1, 0);
         seen.values[0] = 1;
         seen.values[1] = value == (std::uint64_t{42} << 32) + 42 ? 1 : 0;
       }},
      came_without_data,
      {0, 0}}},
    {"lines",
     {{[](const Ranks& ranks, Seen&) {
         put_lines<Scope::warp>(ranks, ranks.at<block::Ll128Slot>(lines_at), line_values.data(), line_values.size(), 7,
                                1);
       },
       [](const Ranks& ranks, Seen& seen) {
         alignas(16) std::array<std::uint64_t, 30> values{};
         wait_lines<Scope::warp>(ranks, values.data(), ranks.at<block::Ll128Slot>(lines_at), values.size(), 7, 0);
         seen.values[0] = 1;
         seen.values[1] = values == line_values ? 1 : 0;
       }},
      came_without_data,
      {0, 0}}},
    {"barrier",
     {{[](const Ranks& ranks, Seen&) {
         ranks.put(words(ranks).x, &new_value, 1, 1);
         const TeamTerms both{{0, 1}, 0, 2, 0};
         Team(ranks, both).barrier();
       },
       [](const Ranks& ranks, Seen& seen) {
         const TeamTerms both{{0, 1}, 1, 2, 0};
         Team(ranks, both).barrier();
         seen.values[0] = 1;
         seen.values[1] = ranks.g(words(ranks).x, 1);
       }},
      came_without_data,
      {0, 0}}},
};

struct LeftOut {
  int rank = 0, order = WeakBlock::none;
};

// One run of a test, in an order that the seed gives.
class LitmusRun {
 public:
  LitmusRun(const Litmus& test, LeftOut left_out, std::uint64_t seed) : generator_(seed) {
    std::array<bool, 2> ended{};
    std::array<std::unique_ptr<WeakBlock>, 2> blocks;
    for (const int rank : {0, 1})
      blocks[index(rank)] =
          std::make_unique<WeakBlock>(generator_, memory_, left_out.rank == rank ? left_out.order : WeakBlock::none);
    const auto is_over = [&](int rank) { return ended[index(rank)] && !blocks[index(rank)]->has_late(); };
    while (!is_over(0) || !is_over(1)) {
      const int rank = static_cast<int>(generator_() % 2);
      WeakBlock& block = *blocks[index(rank)];
      if (!ended[index(rank)])
        ended[index(rank)] = block.run([&] { run_rank(test, rank, block); });
      else if (block.has_late())
        block.let_one_go();
    }
    for (const int rank : {0, 1}) orders[index(rank)] = blocks[index(rank)]->orders();
  }

  Seen seen{};
  std::array<int, 2> orders{};

 private:
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
  void run_rank(const Litmus& test, int rank, WeakBlock& block) {
    HeapTerms terms;
    for (const int each : {0, 1})
      terms.ranks[each] = reinterpret_cast<std::byte*>(memory_.data() + index(each) * words_of_rank);
    terms.bytes = words_of_rank * sizeof(std::uint64_t);
    terms.counters = 64;
    terms.rank = rank;
    terms.own = terms.ranks[rank];
    terms.size = 2;
    terms.deadline_ns = 1;  // the block has no clock
    test.bodies[index(rank)](Ranks(block, terms), seen);
  }

  std::mt19937_64 generator_;
  alignas(128) std::array<std::uint64_t, 2 * words_of_rank> memory_{};
};

TEST(Litmus, WhatTheModelForbidsNeverHappens) {
  const unsigned runs = random_cases(4000);
  for (const auto& [name, test] : litmus_tests) {
    unsigned found = 0;
    for (unsigned seed = 0; seed < runs; ++seed) found += test.forbidden(LitmusRun(test, {}, seed).seen) ? 1 : 0;
    EXPECT_EQ(found, 0u) << name << ", of " << runs;
  }
}

// Each order of each test, left out alone.
TEST(Litmus, EachOrderThatIsMissingIsCaught) {
  int seeds = 0;
  for (const auto& [name, test] : litmus_tests)
    for (const int rank : {0, 1})
      for (int order = 0; order < test.orders[static_cast<std::size_t>(rank)]; ++order, ++seeds) {
        unsigned run = 0;
        for (bool caught = false; !caught && run < 20000; ++run) {
          const LitmusRun one(test, {rank, order}, run);
          ASSERT_EQ(one.orders, test.orders) << name << " has other orders";
          caught = test.forbidden(one.seen);
        }
        EXPECT_LT(run, 20000u) << name << ": order " << order << " of rank " << rank;
      }
  EXPECT_EQ(seeds, 12);
}

// What LL128 relies on: without it, old data come with the number of a new line.
TEST(Litmus, LinesThatArriveInPartsAreCaught) {
  unsigned run = 0;
  for (bool caught = false; !caught && run < 20000; ++run)
    caught = LitmusRun(litmus_tests.at("lines"), {0, WeakBlock::torn_lines}, run).seen.values[1] == 0;
  EXPECT_LT(run, 20000u);
}

}  // namespace
}  // namespace waywiser::one_sided
