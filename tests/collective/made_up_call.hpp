#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/collective/evaluator.hpp"
#include "waywiser/collective/call.hpp"

namespace waywiser {

// A collective of all ranks with made-up inputs, and what must come out. Values are such that every order of reduction
// gives the same exact result in every type.
class MadeUpCall {
 public:
  MadeUpCall(Collective operation, int ranks, const EvaluationTerms& terms, bool in_place);

  const CollectiveCall& of(int rank) const { return calls_[static_cast<std::size_t>(rank)]; }
  // The buffers of one rank: its input, and garbage everywhere else.
  PlainArrays arrays(const Schedule& schedule) const;
  // Empty: right. Otherwise which rank's output is wrong, or that its input was changed.
  // `divided`: an average has been divided by the number of ranks, as no schedule does by itself.
  std::string wrong(const std::vector<Schedule>& schedules, const std::vector<PlainArrays>& arrays,
                    bool divided = false) const;

 private:
  using Values = std::vector<std::byte>;

  void draw_sizes(std::uint64_t seed, int ranks);
  std::size_t block_count(int rank) const;
  Values slice(const Values& values, std::size_t first, std::size_t count) const;
  Values scanned(std::size_t ranks) const;
  Values reduced(bool divided) const;
  Values blocks_for(int rank) const;
  Values neighbor_messages(int rank) const;
  Values expected(int rank, bool divided) const;

  EvaluationTerms terms_;
  bool in_place_;
  std::vector<CollectiveCall> calls_;
  std::vector<Values> inputs_;
};

}  // namespace waywiser
