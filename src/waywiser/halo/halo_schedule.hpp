#pragma once

#include "waywiser/comm/schedule.hpp"
#include "waywiser/halo/boundary.hpp"
#include "waywiser/halo/variant.hpp"

namespace waywiser {

// Pure functions. All arrays of these schedules are of uint8. If the variant is mixed, those of the parts decide.
// Schedules of two ranks match if both are of one variant, or of parts whose variants match, also if one is made by
// staged_schedule().

// The fields' arrays are where the schedule runs.
Schedule halo_schedule(HaloVariant variant, const HaloBoundary& boundary);

// The fields are on a GPU whose kernels pack the boundary, and its parts pass through host memory: the schedule's
// arrays are all parts that are given and all that are taken, each packed. Not for whole_field.
Schedule staged_schedule(HaloVariant variant, const HaloBoundary& boundary);
// What such a kernel does: a schedule of one rank alone, on the fields' arrays and a packed array, given or taken. The
// one that packs also copies what the rank gives itself.
Schedule packing_schedule(const HaloBoundary& boundary);
Schedule unpacking_schedule(const HaloBoundary& boundary);

}  // namespace waywiser
