#pragma once

#include "waywiser/transport/transport.hpp"

namespace waywiser {

// The CPU copies through the GPU's PCIe window, with GDRCopy: libgdrapi and its kernel module must be there. Works on a
// stream of the host. WAYWISER_LIBGDRAPI names another library; the module's device is then not looked for.
Mechanism bar_copy_mechanism();

}  // namespace waywiser
