#pragma once

#include <cstddef>

#include "waywiser/base/units.hpp"
#include "waywiser/device/place.hpp"

namespace waywiser {

// A view of bytes in one place. The host may be unable to access the address (GPU memory).
struct ConstRegion {
  const std::byte* data = nullptr;
  Bytes bytes = 0;
  Place place;

  // Throws invalid_input if [offset, offset + length) is not inside.
  [[gnu::visibility("default")]] ConstRegion slice(Bytes offset, Bytes length) const;
};

struct Region {
  std::byte* data = nullptr;
  Bytes bytes = 0;
  Place place;

  [[gnu::visibility("default")]] Region slice(Bytes offset, Bytes length) const;
  operator ConstRegion() const { return {data, bytes, place}; }  // NOLINT(google-explicit-constructor)
};

[[gnu::visibility("default")]] bool overlap(ConstRegion a, ConstRegion b) noexcept;

// Every put checks this first. Throws invalid_input if sizes differ, or the regions overlap.
[[gnu::visibility("default")]] void check_put(ConstRegion destination, ConstRegion source);

}  // namespace waywiser
