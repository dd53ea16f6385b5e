#include "tests/explorer/shared_regions.hpp"

#include <algorithm>

namespace waywiser::explorer {
namespace {

constexpr bool is_atomic(Access access) { return access == Access::atomic_read || access == Access::atomic_write; }
constexpr bool is_write(Access access) { return access == Access::write || access == Access::atomic_write; }
constexpr bool conflict(Access one, Access other) {
  return (is_write(one) || is_write(other)) && !(is_atomic(one) && is_atomic(other));
}

}  // namespace

std::array<Clock, most_threads> SharedRegions::first_clocks() {
  std::array<Clock, most_threads> clocks{};
  for (unsigned thread = 0; thread < most_threads; ++thread) clocks[thread][thread] = 1;
  return clocks;
}

void SharedRegions::share(const char* name, const void* begin, std::size_t bytes, std::size_t granule) {
  const auto first = reinterpret_cast<std::uintptr_t>(begin);
  regions_.push_back({name, first, first + bytes, granule});
  begin_ = std::min(begin_, first);
  end_ = std::max(end_, first + bytes);
}

std::string SharedRegions::give_back(unsigned thread, const void* begin) {
  auto* region = const_cast<Region*>(find(begin));
  if (region == nullptr || region->given_back) return "memory is given back that was not shared";
  const std::string problem = note(thread, begin, region->end - region->begin, Access::write);
  region->given_back = true;
  return problem;
}

const SharedRegions::Region* SharedRegions::find(const void* address) const noexcept {
  const auto where = reinterpret_cast<std::uintptr_t>(address);
  for (const Region& region : regions_)
    if (where >= region.begin && where < region.end) return &region;
  return nullptr;
}

std::string SharedRegions::race(const Region& region, const Granule& granule, unsigned thread, Access access) const {
  for (unsigned other = 0; other < most_threads; ++other) {
    if (other == thread) continue;
    for (unsigned kind = 0; kind < accesses; ++kind)
      if (conflict(access, static_cast<Access>(kind)) && granule.last[kind][other] > clocks_[thread][other])
        return std::string("nothing orders two accesses to ") + region.name;
  }
  return {};
}

std::string SharedRegions::note(unsigned thread, const void* address, std::size_t bytes, Access access) {
  auto* region = const_cast<Region*>(find(address));
  if (region == nullptr || bytes == 0) return {};
  if (region->given_back) return std::string(region->name) + " is touched after it was given back";
  if (region->granule == 0) return {};
  const auto begin = reinterpret_cast<std::uintptr_t>(address) - region->begin;
  const std::size_t last = (begin + bytes - 1) / region->granule;
  if (last >= region->granules.size()) region->granules.resize(last + 1);
  for (std::size_t i = begin / region->granule; i <= last; ++i) {
    Granule& granule = region->granules[i];
    if (std::string found = race(*region, granule, thread, access); !found.empty()) return found;
    granule.last[static_cast<unsigned>(access)][thread] = clocks_[thread][thread];
  }
  return {};
}

SharedRegions::Released& SharedRegions::released(const void* address) {
  for (Released& one : released_)
    if (one.address == address) return one;
  return released_.emplace_back(Released{address, {}});
}

void SharedRegions::acquire(unsigned thread, const void* address) {
  const Clock& other = released(address).clock;
  std::ranges::transform(clocks_[thread], other, clocks_[thread].begin(),
                         [](std::uint32_t one, std::uint32_t two) { return std::max(one, two); });
}

void SharedRegions::release(unsigned thread, const void* address, bool continues) {
  Clock& clock = released(address).clock;
  if (!continues) clock = {};
  std::ranges::transform(clocks_[thread], clock, clock.begin(),
                         [](std::uint32_t one, std::uint32_t two) { return std::max(one, two); });
  ++clocks_[thread][thread];
}

void SharedRegions::forget_released(const void* address) { released(address).clock = {}; }

}  // namespace waywiser::explorer
