// Results that go straight into outputs which ranks have exposed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>

#include "tests/collective/fused_ranks.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/collective/fused/fused_collective.hpp"

namespace waywiser {
namespace {

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

}  // namespace
}  // namespace waywiser
