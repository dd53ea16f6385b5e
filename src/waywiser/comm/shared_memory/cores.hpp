#pragma once

#include <string>

#include "waywiser/comm/bootstrap/introduction.hpp"

namespace waywiser {

// The cores that this process may run on: "0-3,8".
std::string cores_of_this_process();
// Whether more ranks of the machine want the cores of rank `me` than there are such cores.
bool is_crowded(const std::vector<Introduction>& ranks, std::size_t me);

}  // namespace waywiser
