#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace waywiser {

enum class Area : std::uint8_t { input, output, scratch };

// A piece of one of a rank's three buffers, in elements.
struct Block {
  Area area = Area::output;
  std::size_t offset = 0;
  std::size_t count = 0;

  bool operator==(const Block&) const = default;
};

enum class StepKind : std::uint8_t {
  send,            // `source` to `peer`
  receive,         // from `peer` into `destination`
  receive_reduce,  // destination = destination op what comes from `peer`
  copy,            // `source` to `destination`
  reduce,          // destination = destination op source
};

struct Step {
  StepKind kind = StepKind::copy;
  // Begins when every step of the earlier rounds of its rank is complete; steps of one round may run in any order.
  std::uint32_t round = 0;
  std::int32_t peer = -1;
  Block destination;
  Block source;

  bool operator==(const Step&) const = default;
};

// What one rank does in a collective or a halo exchange: a value, made by a pure function of rank, ranks and counts.
// The k-th send from a to b belongs to the k-th receive or receive_reduce of b from a, in the order of the steps, and
// has its count. Input and output may be the same buffer: an algorithm must be right then too, and never writes its
// input otherwise. Rounds ascend. Zero counts are not steps.
struct Schedule {
  std::string_view algorithm;  // "ring"
  int rank = 0;
  int ranks = 1;
  std::size_t input_count = 0, output_count = 0, scratch_count = 0;  // elements of each buffer
  std::vector<Step> steps;
};

}  // namespace waywiser
