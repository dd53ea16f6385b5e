#pragma once

#include <string>

#include "waywiser/base/units.hpp"
#include "waywiser/comm/bootstrap/introduction.hpp"
#include "waywiser/comm/session/call.hpp"

namespace waywiser {

// What `waywiser status` shows of one rank, as one line of JSON. `waited` is 0 unless it waits unusually long.
std::string rank_status(const Introduction& rank, const std::string& job, const Call& call, Seconds waited);

}  // namespace waywiser
