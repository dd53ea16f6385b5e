#pragma once

#include <string>

#include "waywiser/base/units.hpp"
#include "waywiser/comm/bootstrap/introduction.hpp"
#include "waywiser/comm/message/call.hpp"

namespace waywiser {

// The line of JSON that `waywiser status` shows for one rank. `waited` is 0 unless it waits unusually long.
// `progress_thread`: where it runs; empty: there is none.
std::string rank_status(const Introduction& rank, const std::string& job, const Call& call, Seconds waited,
                        const std::string& progress_thread);

}  // namespace waywiser
