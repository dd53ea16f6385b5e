#pragma once

#include "waywiser/transport/transport.hpp"

namespace waywiser {

// The CPU copies through the GPU's PCIe window by GDRCopy: requires libgdrapi and its kernel module. Works on a stream
// of the host. WAYWISER_LIBGDRAPI names another library; then the module's device is not checked.
Mechanism bar_copy_mechanism();

}  // namespace waywiser
