#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "waywiser/comm/bootstrap/launch.hpp"

namespace waywiser {

// What ranks need to meet without a launcher: one process makes it, and the program gives the bytes to all others. They
// hold the job's secret: whoever has them can become a rank.
using UniqueId = std::array<std::byte, 128>;

// `towards`: empty: all ranks are on this machine, and reach its runtime folder. Otherwise this process will be rank 0,
// and listens from now on: on its address towards this host of another machine, or on this address of its own machine.
// Throws io; invalid_input if that is a loopback address but `towards` does not ask for one.
[[gnu::visibility("default")]] UniqueId make_unique_id(const std::string& towards = "");
// For JoinOptions::launch. An id serves one job. Throws invalid_input for other bytes, and for a rank that there is
// not.
[[gnu::visibility("default")]] Launch launch_by(const UniqueId& id, int rank, int size);

}  // namespace waywiser
