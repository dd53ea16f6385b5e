#pragma once

#include <span>
#include <string>
#include <vector>

#include "waywiser/comm/elements.hpp"

namespace waywiser {

class GroupCore;

// Where the arrays of one rank lie, as it tells the other ranks.
struct ArrayPlaces {
  bool host = false, gpu = false;
};

// The place of the first array on a GPU; of the host if there is none.
Place gpu_of(std::span<const Elements> arrays);
// Collective.
std::vector<ArrayPlaces> places_of_all(GroupCore& core, std::span<const Elements> arrays);
// The same text at all ranks; empty: all arrays of all ranks are on GPUs.
std::string why_no_gpus(const std::vector<ArrayPlaces>& places);

}  // namespace waywiser
