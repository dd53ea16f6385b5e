#include "waywiser/table/plan_piece.hpp"

#include <algorithm>
#include <map>

#include "waywiser/policy/chooser.hpp"

namespace waywiser {
namespace {

constexpr double share_of_best_rate = 0.9;

}  // namespace

Bytes plan_piece(const Chooser* chooser, Bytes usual) {
  if (chooser == nullptr) return usual;
  std::map<Bytes, BytesPerSecond> rates;
  for (const PlanRow& row : chooser->plan().rows)
    if (is_of(row.key, {"message", "host"}))
      for (const auto& [bytes, seconds] : row.expected)
        if (seconds > 0) rates[bytes] = static_cast<double>(bytes) / seconds;
  BytesPerSecond best = 0;
  for (const auto& [bytes, rate] : rates) best = std::max(best, rate);
  for (const auto& [bytes, rate] : rates)
    if (rate >= share_of_best_rate * best) return std::max(bytes, usual / 4);
  return usual;
}

}  // namespace waywiser
