#include "waywiser/base/version.hpp"

namespace waywiser {

std::string_view version() noexcept { return WAYWISER_VERSION; }

}  // namespace waywiser
