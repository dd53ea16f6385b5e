#pragma once

#include <vector>

#include "waywiser/base/units.hpp"
#include "waywiser/halo/boundary.hpp"
#include "waywiser/halo/variant.hpp"

namespace waywiser {

// What one exchange by a variant makes a rank do, each with its bytes: what the table of docs/halo.md counts.
struct HaloWork {
  std::vector<Bytes> messages;   // to other ranks
  std::vector<Bytes> out, back;  // copies before and after them: over a GPU's bus, or within host memory

  bool operator==(const HaloWork&) const = default;
};

// Pure. `on_gpu`: whether the fields of this rank are there. Not for `mixed`.
HaloWork work_of(HaloVariant variant, const HaloBoundary& boundary, bool on_gpu);

}  // namespace waywiser
