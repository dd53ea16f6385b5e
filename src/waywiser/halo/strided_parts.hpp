#pragma once

#include <vector>

#include "waywiser/collective/neighbor_exchange/array_part.hpp"
#include "waywiser/device/strided_copy.hpp"

namespace waywiser {

// The strided copies that move a part of bytes, in the order of its bytes: one where a box has up to two strided
// dimensions, or where a list's runs are equally far apart. Pure.
std::vector<StridedRows> strided_copies(const ArrayPart& part);

}  // namespace waywiser
