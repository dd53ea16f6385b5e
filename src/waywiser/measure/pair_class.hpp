#pragma once

#include "waywiser/measure/profile.hpp"

namespace waywiser {

// The same way for another pair of the class. A relay that would go through one of the new ends goes through an old
// end instead.
Path for_pair(Path path, Place source, Place destination);

}  // namespace waywiser
