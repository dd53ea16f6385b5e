#include "waywiser/measure/size_grid.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace waywiser {
namespace {

constexpr Bytes largest_quick = 64u << 20;
constexpr int last_cheap_power = 26;  // larger sizes take long: they come late

int lateness(int power, int largest) {
  if (power == largest) return 2;
  if (power > last_cheap_power) return power % 2 == 0 ? 4 : 5;
  if (power % 8 == 0) return 0;
  if (power % 4 == 0) return 1;
  return power % 2 == 0 ? 3 : 5;
}

Bytes largest_size_of(const CampaignOptions& options) {
  return options.quick ? std::max(options.min_bytes, std::min(options.max_bytes, largest_quick)) : options.max_bytes;
}

}  // namespace

std::vector<Bytes> grid_sizes(const CampaignOptions& options) {
  std::vector<int> powers;
  for (int power = 0; power < 62; ++power)
    if (Bytes{1} << power >= options.min_bytes && Bytes{1} << power <= largest_size_of(options))
      powers.push_back(power);
  const int largest = powers.empty() ? 0 : powers.back();
  std::stable_sort(powers.begin(), powers.end(),
                   [&](int a, int b) { return lateness(a, largest) < lateness(b, largest); });
  std::vector<Bytes> sizes;
  for (const int power : powers) sizes.push_back(Bytes{1} << power);
  if (sizes.empty()) sizes.push_back(options.min_bytes);
  return sizes;
}

std::vector<Bytes> probe_sizes(const CampaignOptions& options) {
  std::vector<Bytes> sizes;
  const std::vector<Bytes> wanted = options.quick
                                        ? std::vector<Bytes>{64u << 10, 4u << 20}
                                        : std::vector<Bytes>{4u << 10, 64u << 10, 1u << 20, 16u << 20, 256u << 20};
  for (const Bytes size : wanted)
    if (size >= options.min_bytes && size <= largest_size_of(options)) sizes.push_back(size);
  if (sizes.empty()) sizes.push_back(largest_size_of(options));
  return sizes;
}

Bytes middle_size(Bytes left, Bytes right) {
  if (right < left + 2) return left;
  const auto middle = static_cast<Bytes>(std::sqrt(static_cast<double>(left)) * std::sqrt(static_cast<double>(right)));
  const Bytes rounded = right - left > 256 ? middle / 16 * 16 : middle;
  return std::clamp(rounded, left + 1, right - 1);
}

}  // namespace waywiser
