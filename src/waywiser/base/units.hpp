#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace waywiser {

using Bytes = std::uint64_t;
using Seconds = double;
using BytesPerSecond = double;

// "64K", "2M", "1G" are binary; "17" is bytes. Throws invalid_input for anything else.
[[gnu::visibility("default")]] Bytes parse_bytes(std::string_view text);
// The shortest exact form that parse_bytes accepts: 65536 -> "64K", 1000 -> "1000".
[[gnu::visibility("default")]] std::string format_bytes(Bytes bytes);
// Three significant digits for people: "1.21 us", "44.0 ms".
[[gnu::visibility("default")]] std::string format_seconds(Seconds seconds);
// GB = 1e9 bytes: "396 GB/s".
[[gnu::visibility("default")]] std::string format_rate(BytesPerSecond rate);

// The time at which a wait ends. Every wait takes one.
class [[gnu::visibility("default")]] Deadline {
 public:
  using Clock = std::chrono::steady_clock;
  static Deadline in(Seconds seconds);
  bool passed() const { return Clock::now() >= at_; }
  Seconds left() const;  // never negative
  Clock::time_point at() const { return at_; }

 private:
  explicit Deadline(Clock::time_point at) : at_(at) {}
  Clock::time_point at_;
};

// Monotonic time for intervals.
[[gnu::visibility("default")]] Seconds now_seconds();

}  // namespace waywiser
