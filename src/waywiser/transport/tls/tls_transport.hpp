#pragma once

#include "waywiser/transport/transport.hpp"

namespace waywiser {

// Encrypted messages between two machines: TLS 1.3 over TCP. Parameters: device as for ucx; by=openssl|kernel.
Mechanism tls_mechanism();

}  // namespace waywiser
