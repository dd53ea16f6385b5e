#pragma once

#include "waywiser/transport/transport.hpp"

namespace waywiser {

// UCX tag messages between two processes. Parameter transports: which transport of UCX carries the data.
Mechanism ucx_mechanism();

}  // namespace waywiser
