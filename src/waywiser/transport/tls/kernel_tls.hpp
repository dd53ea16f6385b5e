#pragma once

#include <string>

namespace waywiser {

// Why the kernel cannot encrypt a TCP connection (kTLS); empty: it can, if OpenSSL requests it.
const std::string& why_no_kernel_tls();

}  // namespace waywiser
