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

// What a row of a plan is for: the messages of a class of pairs of places, or what all ranks of a group do together.
// The plan belongs to the type of node of a message's source; a place of another node has its own type.
struct PlanKey {
  std::string operation;  // "latency" of a message; "all_reduce"

  std::vector<std::pair<Place, Place>> pairs = {};  // of messages; the first is the measured one
  int processes = 0;                                // of messages: 1 or 2
  std::string rail = {};   // of messages, for ranks bound to that device; empty: for ranks that may use any
  bool encrypted = false;  // of messages, for jobs that encrypt

  std::string memory = {};   // of a group: "host" or "gpu"
  int ranks = 0;             // of a group, on one machine
  std::string shape = {};    // of a halo exchange: a hash of what decides its time
  std::string partner = {};  // of arrays to and from a server's GPU: "HOST:PORT gpu0"

  bool operator==(const PlanKey&) const = default;

  bool is_message() const noexcept { return !pairs.empty(); }
};

// A way that was measured for the row.
struct RankedWay {
  Way way;
  double ratio = 0;  // its time / the chosen way's, in the middle of the range; 0: it was not measured there
};

// The way to take for a key and a range of sizes, and why. The way of a message is that of a path: its mechanism and
// parameters.
struct PlanRow {
  PlanKey key;
  Bytes from_bytes = 0, to_bytes = 0;  // inclusive; of a group: of the block that one rank gives, or of the whole
  // The way to take first, then its runner-up if there is one. Of messages between two processes also the fastest way
  // that the owner of the source runs alone, and between GPUs that the owner of the destination runs alone (it reads).
  std::vector<RankedWay> ways = {};
  std::vector<std::pair<Bytes, Seconds>> expected = {};  // the measured points in the range
  std::string why = {};

  const Way& way() const { return ways.front().way; }
  const RankedWay* runner_up() const noexcept;  // nullptr: none was measured in the middle of the range
  // Of messages: this way for the first pair.
  Path path(const Way& way) const;
  Path path() const { return path(way()); }
};

struct Plan {
  std::string fingerprint;
  std::string machine;
  std::string backend;
  bool simulated = false;
  std::vector<PlanRow> rows;
  std::vector<OtherNode> other_nodes = {};
};

Json to_json(const Plan& plan);
// Throws invalid_input; of a plan of an older version it names the command that makes a new one.
Plan plan_from_json(const Json& value, std::string_view what);

}  // namespace waywiser
