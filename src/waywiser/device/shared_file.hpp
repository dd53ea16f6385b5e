#pragma once

#include "waywiser/device/descriptor.hpp"
#include "waywiser/device/shared_region.hpp"

namespace waywiser {

// Memory of a file that another process opens by its owner's number: for processes of one user and machine.

// Sets the owner, this process, and the contents of `opaque`. Throws device.
void name_file(SharedRegion& shared, int number);

// The file that name_file() has named. Throws device, also if the owner has closed it since.
Descriptor open_file(const SharedRegion& shared);

}  // namespace waywiser
