#include "waywiser/measure/rotation.hpp"

#include <algorithm>

namespace waywiser {
namespace {

constexpr Bytes most_in_flight = 64;
constexpr Bytes largest_cached = 16 << 10;
constexpr Bytes working_set = 64 << 20;
constexpr Bytes largest_warmed = 32 << 20;  // of more, no cache keeps anything from one transfer to the next

}  // namespace

Rotation rotation(Operation operation, Bytes stride) {
  if (operation == Operation::latency) return {1, 1};
  const Bytes fitting = std::max<Bytes>(1, working_set / std::max<Bytes>(1, stride));
  const auto in_flight = static_cast<int>(std::min(fitting, most_in_flight));
  const auto slots = stride <= largest_cached ? in_flight : static_cast<int>(fitting);
  return {std::max(in_flight, 2), slots};
}

int at_least_in_flight(const Rotation& window, Bytes bytes) {
  return bytes <= (1u << 20) ? std::min(window.transfers, 8) : bytes <= (64u << 20) ? 2 : 1;
}

int warm_up(int repetitions, Bytes bytes) {
  if (bytes > largest_warmed) return 0;
  return std::min(static_cast<int>(most_in_flight), 1 + repetitions / 8);
}

}  // namespace waywiser
