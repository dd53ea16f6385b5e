// The steps of collectives by copy engines, run on plain arrays.
#include "waywiser/collective/gpu/copy_steps.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace waywiser {
namespace {

using Values = std::vector<std::uint8_t>;

CollectiveCall call_of(Collective operation, int rank, int ranks, Bytes bytes) {
  CollectiveCall call;
  call.operation = operation;
  call.as.type = DataType::uint8;
  call.as.op = ReduceOp::sum;
  call.rank = rank;
  call.ranks = ranks;
  call.root = ranks - 1;
  call.count = bytes;
  return call;
}

bool gives_to_each(Collective operation) {
  return operation == Collective::all_to_all || operation == Collective::reduce_scatter;
}
bool takes_of_each(Collective operation) {
  return operation == Collective::all_to_all || operation == Collective::all_gather;
}
std::uint8_t value(int rank, Bytes i) {
  return static_cast<std::uint8_t>(static_cast<Bytes>(rank) * 37 + i / 4096 * 5 + i % 251);
}

// All ranks of a call, step by step. A rank empties a slot as late as it may.
struct CopyingRanks {
  CopyingRanks(Collective called, int size, Bytes of_block, Bytes area, Bytes pieces, bool in_place)
      : operation(called), ranks(size), bytes(of_block), landing{size, area} {
    for (int rank = 0; rank < ranks; ++rank) {
      const CollectiveCall call = call_of(operation, rank, ranks, bytes);
      steps.push_back(copy_steps(call, landing, pieces));
      Values in(bytes * blocks(gives_to_each(operation)));
      for (Bytes i = 0; i < in.size(); ++i) in[i] = value(rank, i);
      inputs.push_back(in);
      outputs.emplace_back(bytes * blocks(takes_of_each(operation)), 0xee);
      landings.emplace_back(landing.bytes(), 0xdd);
      if (in_place) outputs.back() = in;
    }
    if (in_place) inputs = {};
  }

  Bytes blocks(bool each) const { return each ? static_cast<Bytes>(ranks) : 1; }
  Values& input(int rank) {
    return inputs.empty() ? outputs.at(static_cast<std::size_t>(rank)) : inputs.at(static_cast<std::size_t>(rank));
  }
  Values& output(int rank) { return outputs.at(static_cast<std::size_t>(rank)); }

  void push(int rank, std::size_t number) {
    for (const CopyStep::Push& each : steps.at(static_cast<std::size_t>(rank)).at(number).pushes) {
      ASSERT_NE(each.to, rank);
      ASSERT_LE(each.bytes, landing.area);
      const Values& from = each.of_output ? output(rank) : input(rank);
      ASSERT_LE(each.from + each.bytes, from.size());
      std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(each.from), each.bytes,
                  landings.at(static_cast<std::size_t>(each.to)).begin() +
                      static_cast<std::ptrdiff_t>(landing.at(number, each.to, rank)));
    }
  }
  void take(int rank, std::size_t number) {
    const CopyStep& step = steps.at(static_cast<std::size_t>(rank)).at(number);
    const Values& mine = landings.at(static_cast<std::size_t>(rank));
    for (const CopyStep::Take& each : step.takes) {
      ASSERT_LE(each.to + each.bytes, output(rank).size());
      std::copy_n(mine.begin() + static_cast<std::ptrdiff_t>(landing.at(number, rank, each.from)), each.bytes,
                  output(rank).begin() + static_cast<std::ptrdiff_t>(each.to));
    }
    for (Bytes i = 0; i < step.summed; ++i) {
      std::uint8_t sum = input(rank).at(step.own + i);
      for (int other = 0; other < ranks; ++other)
        if (other != rank) sum = static_cast<std::uint8_t>(sum + mine.at(landing.at(number, rank, other) + i));
      output(rank).at(step.sum + i) = sum;
    }
  }

  void all() {
    const std::size_t count = steps.front().size();
    for (const auto& each : steps) ASSERT_EQ(each.size(), count) << "as many nods at all ranks";
    for (int rank = 0; rank < ranks; ++rank) keep_own_block(rank);
    std::size_t taken = 0;
    for (std::size_t number = 0; number < count; ++number) {
      // Before the nod of a step all have taken the step before it; the next copies need no more than that.
      while (taken + CopyLanding::slots <= number + 1) take_all(taken++);
      for (int rank = 0; rank < ranks; ++rank)
        for (const int after = steps.at(static_cast<std::size_t>(rank)).at(number).after;
             after >= static_cast<int>(taken);)
          take_all(taken++);
      for (int rank = 0; rank < ranks; ++rank) push(rank, number);
    }
    while (taken < count) take_all(taken++);
  }
  void take_all(std::size_t number) {
    for (int rank = 0; rank < ranks; ++rank) take(rank, number);
  }
  void keep_own_block(int rank) {
    const Bytes at = static_cast<Bytes>(rank) * bytes;
    if (inputs.empty()) return;
    if (takes_of_each(operation))
      std::copy_n(input(rank).begin() + static_cast<std::ptrdiff_t>(gives_to_each(operation) ? at : 0), bytes,
                  output(rank).begin() + static_cast<std::ptrdiff_t>(at));
    if (operation == Collective::broadcast && rank == ranks - 1) output(rank) = input(rank);
  }

  std::uint8_t expected(int rank, Bytes i) const {
    const Bytes block = i / bytes, at = i % bytes, own = static_cast<Bytes>(rank) * bytes;
    switch (operation) {
      case Collective::all_gather: return value(static_cast<int>(block), at);
      case Collective::all_to_all: return value(static_cast<int>(block), own + at);
      case Collective::broadcast: return value(ranks - 1, i);
      default: break;
    }
    std::uint8_t sum = 0;
    for (int each = 0; each < ranks; ++each)
      sum = static_cast<std::uint8_t>(sum + value(each, operation == Collective::reduce_scatter ? own + i : i));
    return sum;
  }

  Collective operation;
  int ranks;
  Bytes bytes;
  CopyLanding landing;
  std::vector<std::vector<CopyStep>> steps;
  std::vector<Values> inputs, outputs, landings;
};

constexpr Collective copied[] = {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather,
                                 Collective::all_to_all, Collective::broadcast};

TEST(CopySteps, GiveWhatTheCallMeans) {
  for (const Collective operation : copied)
    for (const int ranks : {2, 3, 4, 5})
      for (const Bytes bytes : {Bytes{1}, Bytes{4095}, Bytes{50000}, Bytes{100001}})
        for (const Bytes pieces : {Bytes{1}, Bytes{3}, Bytes{8}})
          for (const bool in_place : {false, true}) {
            if (in_place && operation != Collective::all_reduce && operation != Collective::all_to_all) continue;
            CopyingRanks run(operation, ranks, bytes, 2 * CopyPipeline::alignment, pieces, in_place);
            run.all();
            for (int rank = 0; rank < ranks; ++rank)
              for (Bytes i = 0; i < run.output(rank).size(); ++i)
                ASSERT_EQ(run.output(rank)[i], run.expected(rank, i))
                    << name(operation) << " of " << bytes << ", rank " << rank << " of " << ranks << ", " << pieces
                    << " pieces, byte " << i;
          }
}

TEST(CopySteps, AreAsManyAsAskedForUnlessTheLandingIsSmall) {
  const auto steps = [](Collective operation, Bytes bytes, Bytes pieces) {
    return copy_steps(call_of(operation, 0, 2, bytes), CopyLanding::of(2, 1 << 20), pieces).size();
  };
  EXPECT_EQ(steps(Collective::all_gather, 1 << 20, 4), 4u);
  EXPECT_EQ(steps(Collective::all_gather, 5 << 20, 4), 5u);
  EXPECT_EQ(steps(Collective::all_gather, 100, 4), 1u) << "no piece is less than a page";
  EXPECT_EQ(steps(Collective::all_reduce, 2 << 20, 4), 8u) << "each half is added up, then sent";
  EXPECT_EQ(copy_steps(call_of(Collective::broadcast, 1, 2, 1 << 20), CopyLanding::of(2, 1 << 20), 2).size(), 2u);
  EXPECT_EQ(copy_steps(call_of(Collective::broadcast, 1, 3, 1 << 20), CopyLanding::of(3, 1 << 20), 2).size(), 4u);
}

TEST(CopySteps, ASlotHasAnAreaForEachOtherRank) {
  const CopyLanding landing = CopyLanding::of(3, 1 << 20);
  std::vector<Bytes> places;
  for (std::size_t step = 0; step < CopyLanding::slots; ++step)
    for (const int sender : {0, 2}) places.push_back(landing.at(step, 1, sender));
  std::ranges::sort(places);
  for (std::size_t i = 0; i < places.size(); ++i) EXPECT_EQ(places[i], i * landing.area);
  EXPECT_EQ(landing.bytes(), places.size() * landing.area);
  EXPECT_EQ(landing.at(CopyLanding::slots, 1, 2), landing.at(0, 1, 2));
}

TEST(CopySteps, WhatTheyDoNotServeIsRefused) {
  CollectiveCall call = call_of(Collective::all_gather, 0, 2, 100);
  EXPECT_EQ(why_no_copies(call), "");
  call.counts = {1, 2};
  EXPECT_EQ(why_no_copies(call), "copy engines take blocks of one size");
  EXPECT_EQ(why_no_copies(call_of(Collective::reduce, 0, 2, 100)), "copy engines do no reduce");
}

}  // namespace
}  // namespace waywiser
