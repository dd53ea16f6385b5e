#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "waywiser/base/units.hpp"

namespace waywiser {

// Empty: this CPU has stores that bypass its caches.
std::optional<std::string> why_no_nontemporal_copy();
// memcpy whose stores bypass the caches, with the widest vectors that the CPU has; ordered before later stores.
void nontemporal_copy(std::byte* destination, const std::byte* source, Bytes bytes);

// For tests: the widths in bytes that this CPU can run (16, 32, 64), and a copy with one of them.
bool nontemporal_width_available(unsigned width);
void nontemporal_copy_of_width(unsigned width, std::byte* destination, const std::byte* source, Bytes bytes);

}  // namespace waywiser
