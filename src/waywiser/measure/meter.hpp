#pragma once

#include <optional>
#include <string>
#include <vector>

#include "waywiser/measure/sample.hpp"

namespace waywiser {

struct Limit {
  BytesPerSecond rate = 0;  // 0 = not known
  std::string source;
};

// The source of times: a real platform, a table of made-up links in a test, a simulated machine.
class Meter {
 public:
  virtual ~Meter() = default;
  virtual bool simulated() const = 0;
  virtual std::optional<std::string> why_unavailable(const Path& path) = 0;
  // The largest transfer that memory allows on this path (window and both directions counted in).
  virtual Bytes largest(const Path& path) const = 0;
  // Below it the path equals one with a smaller parameter, and is not measured.
  virtual Bytes smallest(const Path&) const { return 0; }
  // The number of pairs that move at once in Operation::loaded of this path, including its own.
  virtual int pairs_at_once(const Path&) const { return 1; }
  virtual Limit limit(const Path& path, Operation operation) const = 0;
  // Moves a fresh pattern once, with a poisoned destination; empty: every byte arrived.
  virtual std::optional<std::string> verify(const Path& path, Operation operation, Bytes bytes) = 0;
  // One timed sample of `repetitions` transfers.
  virtual Sample take(const Path& path, Operation operation, Bytes bytes, int repetitions) = 0;
  virtual Seconds first_use(const Path& path) = 0;
  // The clock of budgets; a made-up meter has its own.
  virtual Seconds now() const { return now_seconds(); }
};

}  // namespace waywiser
