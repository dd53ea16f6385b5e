#include "waywiser/collective/extents.hpp"

#include <algorithm>

namespace waywiser {
namespace {

std::vector<std::size_t> prefix_sums(const std::vector<std::size_t>& counts) {
  std::vector<std::size_t> sums{0};
  for (const std::size_t count : counts) sums.push_back(sums.back() + count);
  return sums;
}

std::vector<std::size_t> counts_of(const CollectiveCall& call) {
  return call.counts.empty() ? std::vector<std::size_t>(static_cast<std::size_t>(call.ranks), call.count) : call.counts;
}

std::vector<std::size_t> even_parts(std::size_t count, int parts) {
  const auto n = static_cast<std::size_t>(parts);
  std::vector<std::size_t> counts(n, count / n);
  for (std::size_t i = 0; i < count % n; ++i) ++counts[i];
  return counts;
}

}  // namespace

Extents::Extents(const CollectiveCall& call) : Extents(counts_of(call)) {}
Extents::Extents(const std::vector<std::size_t>& counts) : offsets_(prefix_sums(counts)) {}
Extents::Extents(std::size_t count, int parts) : Extents(even_parts(count, parts)) {}

std::size_t Extents::largest() const noexcept {
  std::size_t most = 0;
  for (std::size_t i = 1; i < offsets_.size(); ++i) most = std::max(most, offsets_[i] - offsets_[i - 1]);
  return most;
}

Block Extents::range(Area area, int first, int last, std::size_t from) const {
  const std::size_t start = offsets_.at(static_cast<std::size_t>(first));
  return {area, from + start, offsets_.at(static_cast<std::size_t>(last)) - start};
}

}  // namespace waywiser
