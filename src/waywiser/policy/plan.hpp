#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "waywiser/base/json.hpp"
#include "waywiser/measure/profile.hpp"

namespace waywiser {

// The end of the last row: larger messages use its path too.
inline constexpr Bytes no_end = static_cast<Bytes>(std::numeric_limits<std::int64_t>::max());

// The path for a class of pairs, one operation and a range of sizes, and why. Its key is (node type, device) -> (node
// type, device, rail): the plan belongs to the first type; a place of another node has the second.
struct PlanRow {
  std::vector<std::pair<Place, Place>> pairs;  // the first is the measured one; `path` is written for it
  std::string rail = {};                       // for ranks bound to that device; empty: for ranks that may use any
  int processes = 1;
  Operation operation = Operation::latency;
  Bytes from_bytes = 0, to_bytes = 0;  // inclusive
  Path path;
  std::vector<std::pair<Bytes, Seconds>> expected;  // the measured points in the range
  std::optional<Path> runner_up;
  double runner_up_ratio = 0;  // its time / the chosen path's, in the middle of the range
  // Of two processes, if `path` is not one that the owner of the source runs alone, by its GPU if both places are GPUs:
  // the fastest measured path that is.
  std::optional<Path> one_sided;
  // The same for the owner of the destination, between GPUs: it reads.
  std::optional<Path> reading;
  // Between two machines: the fastest measured path that encrypts, for jobs that encrypt.
  std::optional<Path> encrypted;
  std::string why;
};

// The algorithm for a collective of a number of ranks on one machine and a range of sizes, and why.
struct CollectiveRow {
  std::string operation;  // "all_reduce"
  std::string memory;     // "host" or "gpu"
  int ranks = 2;
  Bytes from_bytes = 0, to_bytes = 0;  // inclusive; of the block that one rank gives, or of the whole
  std::string way;                     // an algorithm, a fused kernel, "nccl"
  std::vector<std::pair<Bytes, Seconds>> expected;
  std::string runner_up;  // empty: none
  double runner_up_ratio = 0;
  std::string why;
};

struct Plan {
  std::string fingerprint;
  std::string machine;
  std::string backend;
  bool simulated = false;
  std::vector<PlanRow> rows;
  std::vector<CollectiveRow> collectives;  // older files have none
  std::vector<OtherNode> other_nodes = {};
};

Json to_json(const Plan& plan);
// Also accepts version 1: its rows are for any rail of the one other machine that it names.
Plan plan_from_json(const Json& value, std::string_view what);

}  // namespace waywiser
