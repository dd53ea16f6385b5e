#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "waywiser/base/units.hpp"

namespace waywiser {

// How calls on GPU memory are issued.
enum class CallMode : std::uint8_t {
  blocking,  // each is complete before the next one
  stream,    // enqueued one after the other; the last one's end ends the sample
  graph,     // captured in a CUDA graph, at most most_calls_in_graph in one, and replayed
  kernel     // made by a kernel, all of a sample by one; on host memory, by a thread
};
inline constexpr int most_calls_in_graph = 50;

// One slice of a benchmark, equal at all ranks: `samples` times `calls` calls of one operation.
struct BenchRequest {
  std::string operation;
  // Memory of the first and the second rank of a pair: host, gpu, or exposed (GPU memory in a window of the group).
  std::string input = "host", output = "host";
  Bytes bytes = 0;  // of one message, or of each rank's contribution
  int window = 1;   // messages under way at once, where an operation streams
  int calls = 1, samples = 1;
  std::uint64_t seed = 0;
  Seconds compute = 0;  // between start and wait of an operation that overlaps
  CallMode mode = CallMode::blocking;
  std::string way;  // of a collective: Group::set_algorithm
};

// "OPERATION INPUT OUTPUT BYTES WINDOW CALLS SAMPLES SEED COMPUTE MODE [WAY]", COMPUTE in nanoseconds, MODE as the
// names in CallMode. In graphs CALLS is at most most_calls_in_graph or a multiple of it. Throws invalid_input.
BenchRequest parse_bench_request(std::string_view line);

}  // namespace waywiser
