#pragma once

#include <string>

namespace waywiser_nixl {

// "1.5.1": of the NIXL in this process. Empty: there is none, or it does not tell.
std::string loaded_version();

// Why this plug-in does not serve that version; empty: it does.
std::string why_not_served(const std::string& version);

}  // namespace waywiser_nixl
