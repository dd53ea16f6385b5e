#pragma once

#include "waywiser/transport/transport.hpp"

namespace waywiser {

// Through a buffer in the memory of a third GPU. Parameters: via=gpu2, chunk=4K..1G, depth=1..64; handle between two
// processes.
Mechanism relay_mechanism();

}  // namespace waywiser
