#pragma once

#include <memory>

#include "waywiser/base/json.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"

namespace waywiser {

// The back end to open, as a value: the two processes of a measurement open the same one.
struct PlatformChoice {
  std::string backend = "host";  // "host", "cuda", "virtual_gpu"
  VirtualMachine machine;        // for virtual_gpu
};

Json to_json(const PlatformChoice& choice);
PlatformChoice platform_choice_from_json(const Json& value, std::string_view what);  // throws invalid_input
// Throws invalid_input for an unknown back end, unavailable if it is not available.
std::unique_ptr<Platform> open_platform(const PlatformChoice& choice);

}  // namespace waywiser
