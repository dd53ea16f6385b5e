#pragma once

#include <vector>

#include "waywiser/base/json.hpp"
#include "waywiser/device/cuda/cuda_device.hpp"

namespace waywiser {

// Versions of driver and runtime, and for each GPU its clocks (MHz), temperature (C), power (W) and utilisation from
// NVML; if NVML is missing, "nvml" holds the reason. Never changes a setting.
Json cuda_state(const std::vector<CudaDevice>& devices);

}  // namespace waywiser
