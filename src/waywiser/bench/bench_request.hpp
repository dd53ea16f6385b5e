#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "waywiser/base/units.hpp"

namespace waywiser {

// One slice of a benchmark, as all its ranks are told it: `samples` times `calls` calls of one operation.
struct BenchRequest {
  std::string operation;
  std::string input = "host", output = "host";  // memory: host or gpu; of the first and the second rank of a pair
  Bytes bytes = 0;                              // of one message, or of each rank's contribution
  int window = 1;                               // messages under way at once, where an operation streams
  int calls = 1, samples = 1;
  std::uint64_t seed = 0;
  std::string way;      // of a collective: Group::set_way
  Seconds compute = 0;  // between start and wait of an operation that overlaps
};

// "OPERATION INPUT OUTPUT BYTES WINDOW CALLS SAMPLES SEED COMPUTE [WAY]", COMPUTE in nanoseconds. Throws invalid_input.
BenchRequest parse_bench_request(std::string_view line);

}  // namespace waywiser
