#pragma once

#include <string>

#include "waywiser/base/units.hpp"
#include "waywiser/comm/bootstrap/introduction.hpp"
#include "waywiser/comm/message/call.hpp"
#include "waywiser/comm/message/sent_bytes.hpp"

namespace waywiser {

// The line of JSON that `waywiser status` shows for one rank. `waited` is 0 unless it waits unusually long.
// `progress_thread`: where it runs; empty: there is none. `sent`: bytes from host memory since the join; kernels and
// copies that GPUs make are not in it.
std::string rank_status(const Introduction& rank, const std::string& job, const Call& call, Seconds waited,
                        const std::string& progress_thread, const SentByMechanism& sent);

}  // namespace waywiser
