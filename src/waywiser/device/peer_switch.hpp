#pragma once

#include <string>

namespace waywiser {

// WAYWISER_PEER_ACCESS=off: no GPU of this process maps another GPU's memory, as on a machine without peer access.
// Throws invalid_input unless it is on, off or not set.
bool is_peer_access_off();
// The reason that GPU pairs then have.
inline const std::string peer_access_is_off = "WAYWISER_PEER_ACCESS=off";

}  // namespace waywiser
