#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "waywiser/comm/data_type.hpp"
#include "waywiser/comm/schedule.hpp"

namespace waywiser {

// The three buffers of one rank in one array of elements; input and output may overlap.
struct PlainArrays {
  std::size_t input_at = 0, output_at = 0, scratch_at = 0;  // elements
  std::vector<std::byte> bytes;                             // empty: only the order is checked
  std::vector<std::vector<std::byte>> arrays = {};          // all arrays of Schedule::arrays
};

struct Evaluation {
  std::string wrong;  // the first violation of a rule by a schedule, deadlocks included
  std::vector<bool> finished;
  std::uint64_t steps = 0;                   // message times on the longest chain
  std::uint64_t messages = 0, elements = 0;  // at the rank that sends or receives most
  std::uint64_t worked = 0;                  // elements copied or reduced, at the rank with most
  std::uint64_t passed_on = 0;               // elements received and sent, at the rank with most
};

struct EvaluationTerms {
  DataType type = DataType::float32;
  ReduceOp op = ReduceOp::sum;
  std::uint64_t seed = 1;
  int stopped_rank = -1;  // never begins
};

// The number-th pair of a type and one of the first operations; all pairs come in turn.
inline EvaluationTerms terms_of(std::uint64_t number, std::uint64_t seed, int ops = reduce_ops) {
  const auto type = static_cast<DataType>(number % data_types);
  const auto op = static_cast<ReduceOp>(number / data_types % static_cast<std::uint64_t>(ops));
  return {type, has_reduction(type, op) ? op : ReduceOp::sum, seed, -1};
}

// Runs the schedules of all ranks on plain arrays, one step at a time. The seed draws the order among all that the
// rules allow. A send ends only after its receive has begun. A put reads its source when it runs; the bytes are there
// when the matching wait ends.
Evaluation evaluate(const std::vector<Schedule>& schedules, std::vector<PlainArrays>& arrays,
                    const EvaluationTerms& terms);

}  // namespace waywiser
