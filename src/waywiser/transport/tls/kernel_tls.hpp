#pragma once

#include <string>

namespace waywiser {

// Why the kernel cannot encrypt what goes over a connection of TCP (kTLS); empty: it can, where OpenSSL asks for it.
const std::string& why_no_kernel_tls();

}  // namespace waywiser
