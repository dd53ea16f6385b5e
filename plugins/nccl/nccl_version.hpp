#pragma once

#include <string>

#include "nccl_types.hpp"

namespace waywiser_nccl {

// "2.27.5": of the library that this function belongs to. Empty: it cannot be asked, as in a program that has NCCL
// linked in and exports nothing.
std::string version_of(LogFunction log);

}  // namespace waywiser_nccl
