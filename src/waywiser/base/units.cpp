#include "waywiser/base/units.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr std::string_view suffixes = "KMGT";

std::string three_digits(double value, std::string_view unit) {
  const int decimals = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f %.*s", decimals, value, static_cast<int>(unit.size()), unit.data());
  return text.data();
}

}  // namespace

Bytes parse_bytes(std::string_view text) {
  const auto bad = [&] {
    return Error(ErrorKind::invalid_input,
                 quoted(text, 64) + " is not a size: write a whole number, with K, M, G or T for binary multiples");
  };
  Bytes value = 0;
  const auto [rest, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{}) throw bad();
  const std::string_view suffix(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
  if (suffix.empty()) return value;
  const auto power = suffixes.find(suffix[0]);
  if (suffix.size() != 1 || power == std::string_view::npos) throw bad();
  const unsigned shift = 10 * (static_cast<unsigned>(power) + 1);
  if (value > (std::numeric_limits<Bytes>::max() >> shift)) throw bad();
  return value << shift;
}

std::string format_bytes(Bytes bytes) {
  std::size_t power = 0;
  while (power < suffixes.size() && bytes != 0 && bytes % 1024 == 0) {
    bytes /= 1024;
    ++power;
  }
  return std::to_string(bytes) + (power == 0 ? "" : std::string(1, suffixes[power - 1]));
}

std::string format_seconds(Seconds seconds) {
  if (!std::isfinite(seconds)) return "-";
  const double size = std::abs(seconds);
  if (size >= 1 || size == 0) return three_digits(seconds, "s");
  if (size >= 1e-3) return three_digits(seconds * 1e3, "ms");
  if (size >= 1e-6) return three_digits(seconds * 1e6, "us");
  return three_digits(seconds * 1e9, "ns");
}

std::string format_rate(BytesPerSecond rate) {
  if (!std::isfinite(rate)) return "-";
  return rate >= 1e9 ? three_digits(rate / 1e9, "GB/s") : three_digits(rate / 1e6, "MB/s");
}

Deadline Deadline::in(Seconds seconds) {
  const double bounded = std::clamp(seconds, 0.0, 1e9);
  return Deadline(Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(bounded)));
}

Seconds Deadline::left() const { return std::max(0.0, std::chrono::duration<double>(at_ - Clock::now()).count()); }

Seconds now_seconds() { return std::chrono::duration<double>(Deadline::Clock::now().time_since_epoch()).count(); }

}  // namespace waywiser
