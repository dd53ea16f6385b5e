#pragma once

#include "waywiser/device/stream.hpp"

namespace waywiser {

// Ends all work on the stream's GPU for good, also on other streams: later work never runs, and every later call of
// this process on that GPU fails. GPU streams only.
void launch_trap(Stream& stream);

}  // namespace waywiser
