#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "waywiser/comm/data_type.hpp"
#include "waywiser/comm/schedule.hpp"

namespace waywiser {

// The three buffers of one rank in one array of elements; input and output may share a part.
struct PlainArrays {
  std::size_t input_at = 0, output_at = 0, scratch_at = 0;  // elements
  std::vector<std::byte> bytes;                             // empty: only the order is of interest
  std::vector<std::vector<std::byte>> arrays = {};          // those of Schedule::arrays, all of them
};

struct Evaluation {
  std::string wrong;  // the first thing that a schedule must not do; a deadlock says so
  std::vector<bool> finished;
  std::uint64_t steps = 0;                   // message times on the longest chain
  std::uint64_t messages = 0, elements = 0;  // of the rank that sends most
  std::uint64_t worked = 0;                  // elements copied or reduced by the rank that does so most
};

struct EvaluationTerms {
  DataType type = DataType::float32;
  ReduceOp op = ReduceOp::sum;
  std::uint64_t seed = 1;
  int stopped_rank = -1;  // never begins
};

// The number-th pair of a type and an operation: all that there are, in turn.
inline EvaluationTerms terms_of(std::uint64_t number, std::uint64_t seed) {
  const auto type = static_cast<DataType>(number % data_types);
  const auto op = static_cast<ReduceOp>(number / data_types % reduce_ops);
  return {type, has_reduction(type, op) ? op : ReduceOp::sum, seed, -1};
}

// Runs the schedules of all ranks on plain arrays, one step at a time in an order that the seed draws among those that
// the rules allow. A send ends only when its receive has begun; what is put is read when
// it is put, and is there when its wait has ended.
Evaluation evaluate(const std::vector<Schedule>& schedules, std::vector<PlainArrays>& arrays,
                    const EvaluationTerms& terms);

}  // namespace waywiser
