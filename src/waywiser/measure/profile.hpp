#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "waywiser/base/json.hpp"
#include "waywiser/path/path.hpp"

namespace waywiser {

enum class Operation {
  latency,        // one transfer at a time, completion seen by the host; two processes: half a ping-pong round trip
  streaming,      // a window of transfers in flight: seconds per transfer
  bidirectional,  // both directions at once: seconds per transfer of one direction
  loaded,         // all pairs of the class at once, until the last has ended: seconds per transfer of a pair
};

inline constexpr Operation operations[] = {Operation::latency, Operation::streaming, Operation::bidirectional,
                                           Operation::loaded};
std::string_view name(Operation operation) noexcept;
Operation parse_operation(std::string_view text);  // throws invalid_input

// The measurement of one path, operation and size. Times in seconds per transfer.
struct Point {
  Bytes bytes = 0;
  Seconds seconds = 0;        // median of the samples
  Seconds low = 0, high = 0;  // 95 % confidence interval of the median (order statistics)
  Seconds p50 = 0, p99 = 0;   // of single transfers where they can be timed one by one, else of samples
  int samples = 0;
  Seconds cpu_seconds = 0;  // CPU time of the process(es) per transfer
  bool verified = false;    // the bytes arrived intact at this size
  int disturbed = 0;        // samples that something from outside disturbed, and that could not be taken again

  bool calm() const noexcept { return 2 * disturbed < samples || disturbed == 0; }
};

struct Series {
  Path path;
  Operation operation = Operation::latency;
  std::vector<Point> points;  // ascending sizes
  BytesPerSecond limit = 0;   // of the slowest hop; 0 = not known
  std::string limit_source;
  int pairs = 0;  // of `loaded`: how many moved at once; 0 in older files
};

// One way of what so many ranks on one machine do together, a process each.
struct CollectiveSeries {
  std::string operation;  // "all_reduce"
  std::string memory;     // "host" or "gpu"
  int ranks = 2;
  std::string way;            // an algorithm, a fused kernel, "nccl"
  std::vector<Point> points;  // by the bytes of the block that one rank gives, or of the whole
  std::string partner = {};   // of arrays to and from a server's GPU: "HOST:PORT gpu0"
};

struct FirstUse {
  Path path;
  Seconds seconds = 0;  // opening the path and the first transfer of 8 bytes: registration, handle opening
};

struct Unavailable {
  Path path;  // without parameters when the whole mechanism is
  std::string reason;
};

struct Rejected {
  Path path;
  Operation operation = Operation::latency;
  Bytes bytes = 0;
  std::string reason;  // wrong bytes, faster than the limit, failed, ...
};

// Pairs that the topology says are alike; the first one was measured and stands for all.
struct PairClass {
  std::string name;  // "gpu>gpu NV18"
  std::vector<std::pair<Place, Place>> members;
  int processes = 1;
};

// A type of node that the profile has paths to; its places are "FINGERPRINT:gpu0".
struct OtherNode {
  std::string fingerprint;
  std::string machine;  // a name for people
  bool operator==(const OtherNode&) const = default;
};

struct Profile {
  std::string fingerprint;
  std::string machine;
  std::string backend;     // "cuda", "host", "virtual_gpu"
  bool simulated = false;  // true: no figure in it is a measurement
  std::string created;     // ISO 8601, UTC
  Json state = Json::object();
  std::vector<PairClass> classes;
  std::vector<Series> series;
  std::vector<Series> searched;  // parameters that lost the search, at its few probe sizes only: never chosen
  std::vector<Series> survey;    // every pair of a class at few sizes, to tell pairs apart: never chosen
  std::vector<FirstUse> first_use;
  std::vector<Unavailable> unavailable;
  std::vector<Rejected> rejected;
  std::vector<CollectiveSeries> collectives;  // older files have none
  std::vector<OtherNode> other_nodes;
};

Json to_json(const Profile& profile);
// Reads version 1, too: its "other:" places get the type that its state names. Throws invalid_input: wrong schema or
// version, numbers that are not finite or positive, unordered sizes, ...
Profile profile_from_json(const Json& value, std::string_view what);

}  // namespace waywiser
