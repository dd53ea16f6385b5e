#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "tests/collective/disorderly_block.hpp"
#include "tests/collective/made_up_exchange.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/collective/device_schedule/direct_messages.hpp"
#include "waywiser/collective/device_schedule/program_body.hpp"
#include "waywiser/collective/device_schedule/program_kernel.hpp"
#include "waywiser/collective/device_schedule/translate.hpp"
#include "waywiser/collective/on_stream/failure.hpp"

namespace waywiser::program {

using fused::DisorderlyBlock;

enum class Messages { in_slots, direct };

// The ranks of a group on plain memory, with their schedules as programs; every block is one thread.
class ProgramRanks {
 public:
  ProgramRanks(std::vector<Schedule> schedules, std::vector<PlainArrays> arrays, const EvaluationTerms& terms,
               Messages messages = Messages::in_slots, std::string_view algorithm = "")
      : schedules_(std::move(schedules)), arrays_(std::move(arrays)), ranks_(schedules_.size()) {
    if (!algorithm.empty()) algorithms_.set(program_algorithm(parse_way(algorithm)));
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) ranks_[rank].direct.resize(schedules_[rank].steps.size());
    for (std::size_t rank = 0; messages == Messages::direct && rank < ranks_.size(); ++rank) make_direct(rank, terms);
    std::vector<std::byte*> landings;
    for (const Schedule& schedule : schedules_) {
      Rank& rank = ranks_[plans_.size()];
      std::vector<bool> is_direct;
      for (const View& view : rank.direct) is_direct.push_back(view.data != nullptr);
      rank.messages = MessagePlans::of(schedule, terms.type, is_direct, algorithms_);
      plans_.push_back(LandingPlan::of(schedule, terms.type, rank.messages));
      rank.landing.resize(plans_.back().bytes() / sizeof(Vector16) + 8);
      const auto address = reinterpret_cast<std::uintptr_t>(rank.landing.data());
      landings.push_back(reinterpret_cast<std::byte*>((address + 127) / 128 * 128));
    }
    EXPECT_EQ(why_unlike(plans_), std::nullopt);
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) prepare(rank, landings, terms);
  }

  PlainArrays& arrays(std::size_t rank) { return arrays_[rank]; }
  const LandingPlan& plan(std::size_t rank) const { return plans_[rank]; }
  std::size_t direct_messages() const { return direct_messages_; }
  void set_deadline(double seconds) {
    for (Rank& rank : ranks_) rank.terms.deadline_ns = static_cast<std::uint64_t>(seconds * 1e9);
  }
  Form form(std::size_t rank) const { return ranks_[rank].terms.form; }
  block::Notice& notice(std::size_t rank) { return ranks_[rank].notice; }

  // False: a block has trapped, and the others have ended with it.
  bool start(std::size_t rank, std::uint64_t seed) {
    const ProgramArguments& terms = ranks_[rank].terms;
    std::atomic<bool> trapped = false;
    {
      std::vector<std::jthread> grid;
      for (unsigned index = 0; index < terms.blocks; ++index)
        grid.emplace_back([&, index] {
          try {
            DisorderlyBlock block(index, terms.blocks, 64, seed * 64 + index);
            with_form(terms.form, [&]<typename Form>() { ProgramBody<DisorderlyBlock, Form>(block, terms).run(); });
          } catch (const Trap&) {
            trapped = true;
            on_stream::stop(*terms.notice);
          }
        });
    }
    return !trapped;
  }

  bool start_on_host(std::size_t rank) {
    try {
      run_on_host(ranks_[rank].terms);
      return true;
    } catch (const Trap&) {
      return false;
    }
  }

 private:
  struct Rank {
    MessagePlans messages;
    std::vector<Vector16> landing;
    Translation translation;
    std::vector<std::uint64_t> offsets;
    ProgramState state;
    block::Notice notice;
    ProgramArguments terms;
    std::vector<View> direct;
  };

  // All messages that the rank can receive directly.
  void make_direct(std::size_t receiver, const EvaluationTerms& terms) {
    std::vector<Region> regions;
    for (auto& array : arrays_[receiver].arrays) regions.push_back({array.data(), array.size(), host(0)});
    for (const DirectMessage& each :
         program::direct_messages(schedules_[receiver], terms.type, regions, algorithms_).all) {
      const auto step = storing_step(schedules_[each.sender], static_cast<int>(receiver), each.message);
      if (!step) throw Error(ErrorKind::invalid_input, "a message that nobody sends");
      View view = each.view;
      view.data = arrays_[receiver].arrays[each.array].data() + each.offset;
      ranks_[each.sender].direct[*step] = ranks_[receiver].direct[each.step] = view;
      ++direct_messages_;
    }
  }

  void prepare(std::size_t index, const std::vector<std::byte*>& landings, const EvaluationTerms& evaluation) {
    Rank& rank = ranks_[index];
    const Schedule& schedule = schedules_[index];
    PlainArrays& arrays = arrays_[index];
    rank.offsets.resize(offsets_of(schedule));
    const std::size_t element = bytes_of(evaluation.type);
    Addresses addresses{arrays.bytes.data() + arrays.input_at * element,
                        arrays.bytes.data() + arrays.output_at * element,
                        arrays.bytes.data() + arrays.scratch_at * element,
                        {},
                        landings,
                        rank.offsets.data(),
                        rank.direct};
    for (auto& array : arrays.arrays) addresses.arrays.push_back(array.data());
    rank.translation = translate(schedule, evaluation.type, evaluation.op, addresses, rank.messages, plans_, 132);
    std::ranges::copy(rank.translation.offsets, rank.offsets.begin());
    ProgramArguments& terms = rank.terms;
    terms.instructions = rank.translation.instructions.data();
    terms.rounds = rank.translation.rounds.data();
    terms.round_count = static_cast<std::uint32_t>(rank.translation.rounds.size() - 1);
    terms.rank = static_cast<std::uint32_t>(index);
    terms.blocks = rank.translation.blocks;
    terms.form = rank.translation.form;
    terms.gives_to = rank.translation.gives_to;
    terms.state = &rank.state;
    terms.notice = &rank.notice;
    terms.begun = reinterpret_cast<const std::uint64_t*>(landings[index]);
    for (std::size_t peer = 0; peer < ranks_.size(); ++peer)
      if ((rank.translation.takes_from >> peer & 1) != 0)
        terms.tell[peer] = reinterpret_cast<std::uint64_t*>(landings[peer]) + index;
    terms.signature = block::signature_of(0x77);
    terms.deadline_ns = 60'000'000'000;
  }

  std::vector<Schedule> schedules_;
  std::vector<PlainArrays> arrays_;
  ProgramAlgorithms algorithms_{nullptr};
  std::vector<LandingPlan> plans_;
  std::vector<Rank> ranks_;
  std::size_t direct_messages_ = 0;
};

// Other values in each start; all of an array that is given.
inline void fill(const Schedule& schedule, PlainArrays& arrays, int start) {
  arrays.arrays = made_up_arrays(schedule);
  for (std::size_t i = 0; i < arrays.arrays.size(); ++i)
    for (std::byte& byte : arrays.arrays[i])
      if (schedule.arrays[i].use == ArrayUse::given) byte = static_cast<std::byte>(static_cast<int>(byte) + 41 * start);
}

// Compares the caller's arrays only, not those of the executor.
inline bool same(const Schedule& schedule, const PlainArrays& a, const PlainArrays& b) {
  for (std::size_t i = 0; i < schedule.arrays.size(); ++i)
    if (schedule.arrays[i].use <= ArrayUse::taken && a.arrays[i] != b.arrays[i]) return false;
  return true;
}

struct Expected {
  std::vector<std::vector<PlainArrays>> before, after;  // of each start
};

inline Expected expect(const std::vector<Schedule>& schedules, int starts) {
  Expected expected;
  for (int start = 0; start < starts; ++start) {
    std::vector<PlainArrays> arrays(schedules.size());
    for (std::size_t rank = 0; rank < schedules.size(); ++rank) fill(schedules[rank], arrays[rank], start);
    expected.before.push_back(arrays);
    EXPECT_EQ(evaluate(schedules, arrays, {}).wrong, "");
    expected.after.push_back(std::move(arrays));
  }
  return expected;
}

// Each rank gives `count` float64 to the other and takes as many.
inline std::vector<Schedule> swaps(std::size_t count) {
  std::vector<Schedule> all;
  for (int rank = 0; rank < 2; ++rank)
    all.push_back({"swap",
                   rank,
                   2,
                   0,
                   0,
                   0,
                   {{StepKind::send, 0, 1 - rank, {}, {Area::array, 0, count, 0, 0}},
                    {StepKind::receive, 0, 1 - rank, {Area::array, 0, count, 1, 0}, {}}},
                   {{DataType::float64, count, ArrayUse::given}, {DataType::float64, count, ArrayUse::taken}},
                   {}});
  return all;
}

}  // namespace waywiser::program
