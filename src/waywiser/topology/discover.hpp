#pragma once

#include <filesystem>

#include "waywiser/topology/topology.hpp"

namespace waywiser {

// This machine as /sys and NVML show it. With another `root` than "" only the files below it are read, as a recorded
// machine has no NVML.
Topology discover(const std::filesystem::path& root = {});

}  // namespace waywiser
