#pragma once

#include <map>
#include <string>

namespace waywiser_nccl {

// NCCL_NAME -> value, of FINGERPRINT.nccl.conf in the folder that WAYWISER_NCCL_SETTINGS names: what `waywiser apply`
// keeps for machines like this one. Throws NothingToSay.
std::map<std::string, std::string, std::less<>> node_settings();

}  // namespace waywiser_nccl
