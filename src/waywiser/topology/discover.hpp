#pragma once

#include <filesystem>

#include "waywiser/topology/topology.hpp"

namespace waywiser {

// This machine, from /sys and NVML. With a `root` other than "" only the files below it are read, since a recorded
// machine has no NVML.
Topology discover(const std::filesystem::path& root = {});

}  // namespace waywiser
