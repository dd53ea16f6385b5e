#pragma once

#include "waywiser/transport/transport.hpp"

namespace waywiser {

// A copy by CPU threads. Parameters: stores=temporal|nontemporal, threads=1..256.
Mechanism host_copy_mechanism();

}  // namespace waywiser
