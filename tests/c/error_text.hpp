#pragma once

#include <string>

#include "waywiser/c/waywiser.h"

namespace waywiser {

inline std::string c_error_text() { return ww_error_text(); }

}  // namespace waywiser
